"""Real agent runs that others published, as events of ours: one module a format.

The same file gives the same bytes, always: ids and times come from the file, or from a fixed rule
where it has none. What a file does not say stays unsaid: a cost that it gives for the run alone is
unknown for each step.
"""

from pathlib import Path

import msgspec

from local.trajectories import mini_swe_agent, swe_agent, tau_bench, who_and_when
from local.trajectories.recorded_run import Expected, RecordedRun

__all__ = ["Expected", "RecordedRun", "UnknownTrajectory", "load"]


class UnknownTrajectory(ValueError):  # noqa: N818 - the fact, as the caller reads it
    """The file is no trajectory of a format that is known here."""


def load(path: Path, tenant_id: str = "demo") -> list[RecordedRun]:
    """The runs in a trajectory file, in the file's order: one, or several for tau-bench.

    Raises UnknownTrajectory when the shape fits no format, or fits one but lacks what that needs.
    """
    document = path.read_bytes()
    try:
        return _converted(document, tenant_id)
    except msgspec.DecodeError as error:
        raise UnknownTrajectory(f"{path}: {error}") from error


def _converted(document: bytes, tenant_id: str) -> list[RecordedRun]:
    match msgspec.json.decode(document):
        case {"trajectory_format": str(name), "messages": _} if name.startswith("mini-swe-agent"):
            return mini_swe_agent.convert(document, tenant_id)
        case {"trajectory": _, "history": _, "info": _}:
            return swe_agent.convert(document, tenant_id)
        case [{"traj": _, "reward": _}, *_]:
            return tau_bench.convert(document, tenant_id)
        case {"history": _, "mistake_agent": _, "mistake_step": _}:
            return who_and_when.convert(document, tenant_id)
    raise msgspec.ValidationError("neither mini-swe-agent, SWE-agent, tau-bench nor Who&When")
