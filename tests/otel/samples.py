"""Recorded requests, which are not part of the repository: a test that needs one is skipped where
they are missing."""

import gzip
from pathlib import Path
from typing import Final

import pytest

from runtally.otel import otlp
from runtally.otel.spans import Span

_FOLDER: Final = Path(__file__).parents[3] / "shared" / "samples"


def sample(name: str) -> Path:
    path = _FOLDER / name
    if not path.exists():
        pytest.skip(f"the recorded sample {name} is not on this machine")
    return path


def spans_of(*names: str) -> list[Span]:
    """Those of OTLP requests, in their order."""
    return [span for name in names for span in _spans_of(name)]


def _spans_of(name: str) -> list[Span]:
    body = sample(name).read_bytes()
    spans = otlp.spans_in(gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body)
    read = [span for span in spans if isinstance(span, Span)]
    assert len(read) == len(spans)
    return read
