"""Telemetry that nobody reads: a schedule is played in milliseconds, and would log megabytes."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from functions.adapters.telemetry import Telemetry
from tests.memory_stage import MemoryStage

_SILENT = logging.getLogger("tests.simulation")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False
_SILENT.disabled = True


def quiet(stage: MemoryStage) -> MemoryStage:
    """The stage, with functions that publish nothing."""
    stage.ingest_parts = replace(stage.ingest_parts, telemetry=Quiet())
    stage.summarize_parts = replace(stage.summarize_parts, telemetry=Quiet())
    stage.recount_parts = replace(stage.recount_parts, telemetry=Quiet())
    stage.sweep_parts = replace(stage.sweep_parts, telemetry=Quiet())
    stage.dead_jobs_parts = replace(stage.dead_jobs_parts, telemetry=Quiet())
    return stage


class Quiet(Telemetry):
    """Adds up what would have been published."""

    def __init__(self) -> None:
        self.logger = cast("Any", _SILENT)
        self.sums: Counter[str] = Counter()

    def emit(
        self,
        counts: Mapping[str, float],
        milliseconds: Mapping[str, Iterable[float]] | None = None,
        rejected: Iterable[str] = (),
        about: Mapping[str, object] | None = None,
    ) -> None:
        for name, value in counts.items():
            self.sums[name] += int(value)
        self.sums["Rejected"] += len(list(rejected))
