"""Spans of OpenTelemetry as steps: the exporter for workers, and what the OTLP routes map with.

`SpanExporter` needs the extra `runtally[otel]`; nothing here is imported before it is asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtally.otel.exporter import SpanExporter

__all__ = ["SpanExporter"]


def __getattr__(name: str) -> Any:
    if name == "SpanExporter":
        from runtally.otel.exporter import SpanExporter  # noqa: PLC0415 - OpenTelemetry's SDK

        return SpanExporter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
