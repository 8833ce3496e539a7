"""What the functions of a stage print while everything happens, under the stage's own namespace."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from functions.adapters.telemetry import Telemetry
from tests import emf
from tests.infra.assembly import Assembly
from tests.memory_stage import MemoryStage

SERVICES: Final = ("ingest", "summarize", "recount", "api", "dead_jobs", "sweep", "erase")


class Told:
    """`lines()` are those printed since it was asked last."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def lines(self) -> list[dict[str, Any]]:
        return emf.lines_of(self._capsys.readouterr().out)

    def measured(self) -> emf.Measured:
        return emf.measured_in(self.lines())


def namespace_of(assembly: Assembly) -> str:
    """As all functions of ours find it in their environment."""
    (namespace,) = {
        each["Environment"]["Variables"]["POWERTOOLS_METRICS_NAMESPACE"]
        for each in assembly.resources("AWS::Lambda::Function").values()
        if each["Handler"].startswith("functions.")
    }
    return str(namespace)


@contextmanager
def listening(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    namespace: str,
    level: str = "INFO",
) -> Iterator[tuple[MemoryStage, Told]]:
    """A stage whose functions publish metrics and log from a level on, to be read here."""
    monkeypatch.delenv("POWERTOOLS_METRICS_DISABLED")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", namespace)
    with heard(level):
        yield MemoryStage(), Told(capsys)


class _StandardOutput:
    """Whatever it is when a line is written: pytest changes it between set-up and test."""

    def write(self, text: str) -> None:
        sys.stdout.write(text)

    def flush(self) -> None:
        sys.stdout.flush()


@contextmanager
def heard(level: str) -> Iterator[None]:
    """Loggers outlive a test; for its time they write to standard output."""
    for service in SERVICES:
        Telemetry(service)
    loggers = [logging.getLogger(service) for service in SERVICES]
    before = [(logger.level, _stream_of(logger)) for logger in loggers]
    for logger, (_, handler) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        handler.stream = _StandardOutput()  # not setStream: the one before may be closed
    yield
    for logger, (usual, handler) in zip(loggers, before, strict=True):
        logger.setLevel(usual)
        handler.stream = sys.__stdout__


def _stream_of(logger: logging.Logger) -> Any:
    (handler,) = (each for each in logger.handlers if type(each) is logging.StreamHandler)
    return handler
