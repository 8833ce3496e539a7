"""The sample programs run, record what they did, and are what the shipped recordings came from."""

import json
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest

from functions.core.model import StepRow
from functions.core.phases import NO_PHASE, phases_of
from local import recordings, samples
from local.recordings import ExpectedTotals, Recording
from runtally import wire

MAX_TOTAL_BYTES = 1_500_000


def shipped(program: str) -> list[Recording]:
    return recordings.load(samples.RECORDINGS / f"{program}.jsonl.gz")


def events_of(recording: Recording) -> list[wire.Event]:
    opened = [wire.open_message(body.decode()) for body in recording.messages]
    return [wire.decode_event(line, "") for message in opened for line in message.lines]


def steps_of(recording: Recording) -> list[wire.Step]:
    return [event for event in events_of(recording) if isinstance(event, wire.Step)]


def totals_of(program: str) -> list[ExpectedTotals]:
    return [recordings.expected_totals(run.messages) for run in shipped(program)]


def depth_of(steps: list[wire.Step]) -> int:
    """How many agents the longest chain of parents has."""
    parents: Mapping[str, wire.Step] = {step.step_id: step for step in steps}

    def agents_from(step: wire.Step | None) -> int:
        if step is None:
            return 0
        return (step.kind == "agent") + agents_from(parents.get(step.parent_id or ""))

    return max(map(agents_from, steps))


@pytest.mark.parametrize("program", samples.PROGRAMS)
def test_a_program_still_records_what_is_shipped(program: str, tmp_path: Path) -> None:
    """All but ids, times and what `research` finds, which differs between versions of Python."""

    def usage(step: wire.Step) -> Any:
        if program == "research":
            return step.model
        return step.input_tokens, step.output_tokens, step.cached_tokens, step.cost_usd

    def outline(run: Recording) -> Any:
        steps = Counter(
            (s.phase, s.kind, s.agent, s.status, s.error, usage(s)) for s in steps_of(run)
        )
        return recordings.expected_totals(run.messages).status, steps

    samples.record(program, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"{program}.jsonl.gz"]
    fresh = recordings.load(tmp_path / f"{program}.jsonl.gz")
    assert [outline(run) for run in fresh] == [outline(run) for run in shipped(program)]
    assert_whole_and_discreet(fresh)


def row(step: wire.Step) -> StepRow:
    return StepRow(
        step_id=step.step_id,
        kind=step.kind,
        status=step.status,
        started_at=step.started_at,
        ended_at=step.ended_at,
        name=step.name or "",
        parent_id=step.parent_id,
    )


@pytest.mark.parametrize("program", samples.PROGRAMS)
def test_a_recording_that_is_moved_adds_up_to_the_same(program: str) -> None:
    for run in shipped(program):
        moved = recordings.retime(run.messages, 1_800_000_000_000_000_000)
        assert moved != list(run.messages)
        assert recordings.expected_totals(moved) == recordings.expected_totals(run.messages)


@pytest.mark.parametrize("program", samples.PROGRAMS)
def test_a_recording_is_whole_and_says_nothing_of_its_machine(program: str) -> None:
    assert_whole_and_discreet(shipped(program))


def assert_whole_and_discreet(runs: list[Recording]) -> None:
    for run in runs:
        events = events_of(run)
        assert isinstance(events[0], wire.RunStarted)
        assert isinstance(events[-1], wire.RunEnded)
        ids = {step.step_id for step in steps_of(run)}
        assert len(ids) == len(steps_of(run)) > 0
        assert {s.parent_id for s in steps_of(run)} <= ids | {None}
        text = b"".join(run.messages).decode()
        for place in (gettempdir(), str(Path.home()), str(Path.cwd()), "runtally.dropped"):
            assert place not in text


def test_the_recordings_are_those_of_the_programs_and_small() -> None:
    files = sorted(samples.RECORDINGS.iterdir())
    assert [file.name for file in files] == sorted(f"{p}.jsonl.gz" for p in samples.PROGRAMS)
    assert sum(file.stat().st_size for file in files) <= MAX_TOTAL_BYTES


def test_research_has_phases_and_eight_searchers_side_by_side() -> None:
    (run,) = shipped("research")
    steps = steps_of(run)
    assert [s.phase for s in steps if s.phase] == ["plan", "search", "write"]
    (searching,) = [step for step in steps if step.phase == "search"]
    searchers = [step for step in steps if step.parent_id == searching.step_id]
    assert len(searchers) == 8
    searchers.sort(key=lambda step: step.started_at)
    assert any(one.ended_at > two.started_at for one, two in pairwise(searchers))


def test_bugfix_has_a_run_that_succeeds_after_failures_and_one_that_fails() -> None:
    fixed, given_up = totals_of("bugfix")
    assert (fixed.status, fixed.agents_total, fixed.failed_total) == ("succeeded", 17, 6)
    assert (given_up.status, given_up.agents_total, given_up.failed_total) == ("failed", 17, 8)
    end = events_of(shipped("bugfix")[1])[-1]
    assert isinstance(end, wire.RunEnded)
    assert end.error == "OutOfTries: 4 tries"


def test_translate_cjk_keeps_every_character() -> None:
    (run,) = shipped("translate_cjk")
    texts = [bytes(s.payload).decode() for s in steps_of(run) if s.payload]
    assert any("𠮷祥如意 🎉" in text for text in texts)
    assert any("👩‍👩‍👧‍👦" in text for text in texts)
    end = events_of(run)[-1]
    assert isinstance(end, wire.RunEnded)
    assert list(json.loads(end.result or "")) == ["中文", "日本語", "한국어"]


def test_wide_has_1500_calls_and_exact_costs() -> None:
    (totals,) = totals_of("wide")
    assert (totals.status, totals.agents_total, totals.failed_total) == ("succeeded", 1_500, 3)
    assert totals.cost_unknown_total == 751
    # 13 cached tokens of system prompt, a prompt of 1 token (only 1000 has 2), an answer of 1.
    call = 13 * Decimal("0.000000027") + Decimal("0.00000027") + Decimal("0.000001098765432123")
    assert totals.cost_usd_total == 749 * call + Decimal("0.00000027")
    steps = steps_of(shipped("wide")[0])
    assert Counter(s.phase for s in steps) == {"load": 1, "guess": 749, "check": 749, "report": 1}
    numbers = [str(s.error) for s in steps if s.status == "failed"]
    assert sorted(numbers) == [f"WrongGuess: {n} is composite" for n in (341, 561, 645)]


def test_nested_is_five_agents_deep_without_phases() -> None:
    (run,) = shipped("nested")
    steps = steps_of(run)
    assert {step.phase for step in steps} == {None}
    assert depth_of(steps) == 5
    left, right = "(7 + 5) * (9 - 4) + 6 / (8 - 5)", "(2 + 3) * 4 - 10 / (1 + 1)"
    phases = phases_of([row(step) for step in steps])
    assert set(phases.values()) == {NO_PHASE, "chat", left, right, "Sub"}
    end = events_of(run)[-1]
    assert isinstance(end, wire.RunEnded)
    assert end.result == "47"


def test_cancelled_is_cancelled_all_the_way_up() -> None:
    (totals,) = totals_of("cancelled")
    assert (totals.status, totals.agents_total, totals.cancelled_total) == ("cancelled", 4, 2)
