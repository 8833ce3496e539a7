"""Saved OTLP requests as recordings: a body as it was sent, or an exporter's file of JSON lines.

Protobuf or JSON, gzipped or not, spans or log records.
"""

import contextlib
import gzip
import zlib
from pathlib import Path
from typing import Final

from local.recordings import InvalidRecording, Recording
from runtally import wire
from runtally.otel import messages
from runtally.otel.messages import Signal
from runtally.otel.steps import Mapped
from runtally.wire import Rejected

SUFFIXES: Final = frozenset({".pb", ".bin", ".body", ".otlp"})
_GZIPPED: Final = b"\x1f\x8b"
_NAMES: Final = (b'"resourceSpans"', b'"resourceLogs"')


def is_otlp(content: bytes) -> bool:
    """Whether JSON, or its first line, is a request of OTLP; protobuf is known by its name only."""
    first = content.lstrip()[:4_096]
    return first.startswith(b"{") and any(name in first for name in _NAMES)


def inflated(path: Path) -> bytes:
    """The content of a file, gzipped or not. Raises InvalidRecording when it is cut short."""
    content = path.read_bytes()
    try:
        return gzip.decompress(content) if content.startswith(_GZIPPED) else content
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidRecording(f"{path}: {error}") from error


def load(path: Path, content: bytes, tenant_id: str = "demo") -> list[Recording]:
    """The runs of a saved file, in the order in which they first appear.

    Raises InvalidRecording with the place of the first span that cannot be recorded.
    """
    recorded: list[Mapped] = []
    for number, body in _bodies(content):
        try:
            for one in _mapped(body):
                if isinstance(one, Rejected):
                    raise one
                recorded.append(one)
        except Rejected as rejected:
            raise InvalidRecording(f"{path}, request {number}: {rejected}") from rejected
    runs: dict[str, list[bytes]] = {}
    for message in messages.sealed(tenant_id, recorded):
        head = wire.open_message(message.body.decode()).head
        runs.setdefault(head.run_id or "", []).append(message.body)
    return [Recording(tenant_id, run_id, tuple(bodies)) for run_id, bodies in runs.items()]


def _bodies(content: bytes) -> list[tuple[int, bytes]]:
    """The requests of a file, numbered from one: a line each where each line is one."""
    lines = [line for line in content.splitlines() if line.strip()]
    if is_otlp(content) and all(is_otlp(line) for line in lines):
        return list(enumerate(lines, 1))
    return [(1, content)]


def _mapped(body: bytes) -> list[Mapped | Rejected]:
    if is_otlp(body):
        return _read("logs" if _NAMES[1] in body[:4_096] else "traces", body)
    try:
        spans = _read("traces", body)
    except Rejected:
        return _read("logs", body)
    if spans and all(isinstance(one, Rejected) for one in spans):
        # Protobuf does not say what it is: of logs, no record is a valid span.
        with contextlib.suppress(Rejected):
            return _read("logs", body)
    return spans


def _read(signal: Signal, body: bytes) -> list[Mapped | Rejected]:
    return list(messages.mapped(messages.read(signal, body)))
