"""Recorded runs, sent through the real queue as the worker's library sends them."""

import time
from pathlib import Path
from typing import Final

from functions.core.keys import RunRef
from local import otlp_files, recordings, trajectories
from local.commands import LocalStageError
from local.recordings import ExpectedTotals, InvalidRecording, Recording
from local.trajectories import UnknownTrajectory

_FORMATS: Final = (
    "A recording is JSON Lines of message bodies (.jsonl, .jsonl.gz); a trajectory is a file of "
    "mini-swe-agent, SWE-agent, tau-bench or Who&When; a saved OTLP request is JSON, or protobuf "
    "(.pb, .body), gzipped or not."
)


def load(path: Path) -> list[Recording]:
    """The runs in a recording, a public trajectory or a saved OTLP request. Raises LocalStageError
    for anything else."""
    try:
        content = otlp_files.inflated(path)
        if otlp_files.is_otlp(content) or otlp_files.SUFFIXES & set(path.suffixes):
            return otlp_files.load(path, content)
        if ".jsonl" in path.suffixes:
            return recordings.load(path)
        return [
            Recording(run.tenant_id, run.run_id, tuple(run.messages()))
            for run in trajectories.load(path)
        ]
    except OSError as error:
        raise LocalStageError(f"{path}: {error.strerror}", _FORMATS) from None
    except (InvalidRecording, UnknownTrajectory) as error:
        raise LocalStageError(str(error), _FORMATS) from None


def ref_of(recording: Recording) -> RunRef:
    return RunRef(recording.tenant_id, recording.run_id)


def ending_now(recording: Recording) -> Recording:
    messages = recordings.retime(recording.messages, time.time_ns())
    return Recording(recording.tenant_id, recording.run_id, tuple(messages))


def addressed(recording: Recording, tenant_id: str | None, run_id: str | None) -> Recording:
    """The same events as those of another tenant or run; None leaves what the recording says."""
    messages = recordings.readdress(recording.messages, tenant_id=tenant_id, run_id=run_id)
    whose = (tenant_id or recording.tenant_id, run_id or recording.run_id)
    return Recording(*whose, tuple(messages))


def expected(recording: Recording) -> ExpectedTotals:
    """What a stage must show for the run, added up from the file alone."""
    return recordings.expected_totals(recording.messages)
