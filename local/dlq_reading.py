"""What all commands `runtally dlq` take, and the dead letters that they mean."""

from collections.abc import Collection
from datetime import timedelta
from typing import Annotated, Final

from cyclopts import Parameter

from local.commands import LocalStageError
from local.dead_letters import Letter, Survey, survey
from local.progress import console
from local.queues import Queue, queues_of
from local.stage import Stage

LIST: Final = "`runtally dlq list` shows what there is."

Within = Annotated[
    timedelta,
    Parameter(help="How long to read a queue that has many: 30s, 5m.", show_default=lambda _: "1m"),
]
OneQueue = Annotated[
    str | None, Parameter(name="--queue", help="Only of this queue, as `dlq list` names it.")
]
A_MINUTE: Final = timedelta(minutes=1)


def meant(stage: Stage, name: str | None) -> list[Queue]:
    """The queues that are meant. Raises LocalStageError for one that is not there."""
    there = queues_of(stage)
    wanted = [queue for queue in there if name in {None, queue.name}]
    if not wanted:
        known = ", ".join(queue.name for queue in there)
        raise LocalStageError(f"There is no queue {name}.", f"The stage has {known}.")
    return wanted


def read_letters(
    stage: Stage,
    queue: str | None,
    reason: str | None,
    within: timedelta,
    ids: Collection[str] = (),
) -> Survey:
    """The dead letters of these queues that have one of the ids, or that reason, where given."""

    def wanted(letter: Letter) -> bool:
        return (not ids or letter.message_id in ids) and reason in {None, letter.reason or "none"}

    with console.status("Reading dead letters"):
        return survey(stage, meant(stage, queue), within.total_seconds(), wanted)
