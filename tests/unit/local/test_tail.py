"""`runtally tail`: each call and line of log once, none lost, in whatever order they arrive."""

import itertools
import json
import random
from collections.abc import Callable
from typing import Any, cast

import pytest

from functions.adapters.sqs import SqsRecountQueue
from functions.core import keys
from local.reading import Reading, TenantOptions
from local.tail import Follower, follow, tail
from runtally import wire
from tests import build
from tests.build import ended, log, started, step, step_id
from tests.memory_stage import RECOUNTS
from tests.unit.local.terminal import Terminal


class Following:
    """Follows run-1 while these things happen, one between each two looks."""

    def __init__(self, terminal: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
        self.terminal = terminal
        self._capsys = capsys

    def __call__(self, *later: Callable[[], None]) -> list[str]:
        """The ids of what was printed, in the order of printing."""
        events = iter(later)
        follower = Follower(Reading.of(self.terminal.stage, "acme"), "run-1")

        def wait() -> None:
            next(events)()

        follow(follower, as_json=True, wait=wait)
        assert next(events, None) is None, "it ended too early"
        printed = map(json.loads, self._capsys.readouterr().out.splitlines())
        return [new.get("step_id") or new["log_id"] for new in printed]

    def recorded(self, *events: wire.Event, counted: bool = True) -> Callable[[], None]:
        return lambda: self.terminal.record("run-1", *events, counted=counted)


@pytest.fixture
def following(terminal: Terminal, capsys: pytest.CaptureFixture[str]) -> Following:
    return Following(terminal, capsys)


def test_what_is_stored_meanwhile_is_printed_as_it_comes(following: Following) -> None:
    following.recorded(started(), step(1), log(2, "a"))()
    printed = following(
        following.recorded(step(3), step(2)),
        following.recorded(log(5, "b")),
        following.recorded(step(4), ended()),
    )
    assert printed == [step_id(n) for n in (2, 1, 2, 3, 5, 4)]


@pytest.mark.parametrize("below", [50, 110, 200, 2_000])
def test_a_call_below_those_that_were_printed_is_not_lost(following: Following, below: int) -> None:
    """A long call is stored when it ends, under an id from when it began."""
    following.recorded(started(), step(2_500))()
    late = step(2_500 - below)
    printed = following(following.recorded(late), following.recorded(ended()))
    assert printed == [step_id(2_500), late.step_id]


def test_it_goes_on_until_the_summary_covers_what_came_after_the_end(
    following: Following,
) -> None:
    following.recorded(started(), step(1), ended(), counted=False)()
    printed = following(
        following.recorded(step(2), counted=False),
        following.terminal.memory.drain,
    )
    assert printed == [step_id(1), step_id(2)]


def test_it_goes_on_until_there_is_a_summary_though_all_is_counted(following: Following) -> None:
    following.recorded(started(), step(1), ended())()
    memory = following.terminal.memory
    del memory.dynamodb.items[keys.item_of_run(build.RUN, keys.SUMMARY)]

    def recount() -> None:
        SqsRecountQueue(cast("Any", memory.sqs), RECOUNTS).request_recount(build.RUN, None)
        assert memory.recount() == []

    assert following(recount) == [step_id(1)]


def test_a_call_that_is_stored_and_not_counted_yet_keeps_it_going(following: Following) -> None:
    following.recorded(started(), step(1), ended())()
    following.recorded(step(2), counted=False)()
    assert following(following.terminal.memory.drain) == [step_id(1), step_id(2)]


@pytest.mark.parametrize("seed", range(8))
def test_any_order_prints_each_once(following: Following, seed: int) -> None:
    shuffled = random.Random(seed)  # noqa: S311 - an order, no secret
    steps = [step(n) for n in range(0, 3_000, 10)]
    shuffled.shuffle(steps)
    batches = [list(some) for some in itertools.batched(steps, 30, strict=True)]
    following.recorded(started())()
    later = [
        following.recorded(*some, *shuffled.choices(steps, k=5), counted=shuffled.random() < 0.5)
        for some in batches
    ]
    printed = following(*later, following.recorded(ended()))
    assert sorted(printed) == sorted(s.step_id for s in steps)


def test_a_window_is_read_again_and_the_whole_run_only_when_calls_are_missing(
    terminal: Terminal,
) -> None:
    terminal.record("run-1", started(), *(step(n) for n in range(0, 3_000, 10)))
    follower = Follower(Reading.of(terminal.stage, "acme"), "run-1")
    assert len(list(follower.look())) == 300
    evaluated: list[str] = []
    query = terminal.memory.dynamodb.query

    def count(**request: Any) -> dict[str, Any]:
        answer = query(**request)
        evaluated.extend(item["SK"]["S"] for item in answer["Items"])
        return answer

    terminal.memory.dynamodb.query = count  # type: ignore[method-assign]
    assert list(follower.look()) == []
    assert 0 < sum(sort.startswith(keys.STEP_PREFIX) for sort in evaluated) < 20


def test_a_run_in_buckets_is_followed_too(following: Following) -> None:
    run = build.RUN
    memory = following.terminal.memory
    assert memory.ingest(build.body(started(), step(1), run=run, buckets=8)) == []
    rest = [step(n) for n in range(2, 40)]

    def more() -> None:
        assert memory.ingest(build.body(*rest, run=run, buckets=8)) == []
        memory.drain()

    printed = following(more, following.recorded(ended()))
    assert printed == [step_id(n) for n in range(1, 40)]


def test_people_get_a_line_a_call_and_a_script_an_exit_code(terminal: Terminal) -> None:
    call = step(1, phase="plan", name="翻译", cost_usd="0.5", status="failed", error="E: no")
    terminal.record("run-1", started(), call, log(2, "one", "two"), ended(status="failed"))
    lines = terminal("tail", "run-1").splitlines()
    assert [line.split("  ")[1:] for line in lines] == [
        ["one"],
        ["two"],
        ["plan", "model", "翻译", "1,000 ms", "$0.5", "failed", "E: no"],
    ]


def test_ctrl_c_leaves_quietly(terminal: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    terminal.record("run-1", started(), step(1))
    options = TenantOptions(tenant="acme")
    assert tail("run-1", at=options, connect=lambda *_: terminal.stage, sleep=interrupt) == 0
    shown = capsys.readouterr()
    assert "model" in shown.out
    assert "1 call" in shown.err
