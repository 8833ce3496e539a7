import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from runtally import Recorder, wire
from tests.unit.sdk.recording import KeepingSender, events_of


def test_a_run_from_start_to_end(sender: KeepingSender, recorder: Recorder) -> None:
    before = time.time_ns()
    with (
        recorder,
        recorder.run(
            "research",
            run_id="run-1",
            attributes={"a": 1},
            session_id="s",
            stale_after_s=60,
            buckets=4,
        ) as run,
    ):
        with run.step("plan", phase="plan", agent="planner", attributes={"b": 1}) as step:
            step.set(model="m", provider="p", input_tokens=1, output_tokens=2, cached_tokens=3)
            step.set(cost_usd=Decimal("0.5"), attributes={"c": 2}, payload={"x": [1]})
            step.set(cost_computed_usd=Decimal("0.4"), price_table="t", session_id="of the step")
        run.log("one", "two")
        run.result = {"ok": True}
    heads = [wire.open_message(body.decode()).head for body in sender.bodies]
    assert set(heads) == {wire.Head(1, "acme", "run-1", 4)}
    assert [len(events_of(body)) for body in sender.bodies] == [1, 3]  # at the start, at the end
    start = sender.started
    assert (start.pipeline, start.attributes, start.session_id, start.stale_after_s) == (
        "research",
        {"a": 1},
        "s",
        60,
    )
    (recorded,) = sender.steps
    assert recorded == wire.Step(
        step_id=step.step_id,
        name="plan",
        phase="plan",
        agent="planner",
        kind="agent",
        status="succeeded",
        started_at=recorded.started_at,
        ended_at=recorded.ended_at,
        model="m",
        provider="p",
        input_tokens=1,
        output_tokens=2,
        cached_tokens=3,
        cost_usd="0.5",
        cost_computed_usd="0.4",
        price_table="t",
        session_id="of the step",
        attributes={"b": 1, "c": 2},
        payload=msgspec.Raw(b'{"x":[1]}'),
    )
    end = sender.ended
    assert (
        before <= start.at <= recorded.started_at <= recorded.ended_at <= end.at <= time.time_ns()
    )
    (log,) = [e for e in sender.events if isinstance(e, wire.RunLog)]
    assert log.lines == ["one", "two"]
    assert (end.status, end.result, end.error) == ("succeeded", '{"ok":true}', None)


@pytest.mark.parametrize(
    ("raised", "status", "text"),
    [
        (ValueError("no"), "failed", "ValueError: no"),
        (KeyError(), "failed", "KeyError"),
        (asyncio.CancelledError(), "cancelled", "CancelledError"),
        (KeyboardInterrupt(), "cancelled", "KeyboardInterrupt"),
        (SystemExit(1), "cancelled", "SystemExit: 1"),
    ],
)
def test_an_exception_is_recorded_and_goes_on(
    sender: KeepingSender, recorder: Recorder, raised: BaseException, status: str, text: str
) -> None:
    with recorder:
        with pytest.raises(type(raised)) as caught, recorder.run("p") as run, run.step("s"):
            raise raised
        assert caught.value is raised
    (step,) = sender.steps
    assert (step.status, step.error) == (status, text)
    assert (sender.ended.status, sender.ended.error) == (status, text)


def test_an_exception_that_is_handled_fails_the_step_and_not_the_run(
    sender: KeepingSender, recorder: Recorder
) -> None:
    with recorder, recorder.run("p") as run:
        with pytest.raises(ZeroDivisionError), run.step("s"):
            _ = 1 / 0
        with run.step("t") as step:
            step.fail("the tool said no")
    assert [(s.status, s.error) for s in sender.steps] == [
        ("failed", "ZeroDivisionError: division by zero"),
        ("failed", "the tool said no"),
    ]
    assert sender.ended.status == "succeeded"


def test_children_name_their_parent_and_inherit_nothing(
    sender: KeepingSender, recorder: Recorder
) -> None:
    with recorder, recorder.run("p") as run, run.step("a", phase="x") as a:
        with run.step("b", kind="tool", parent=a) as b, b.step("c", kind="model"):
            pass
        with run.step("d", parent=a.step_id):
            pass
    by_name = {step.name: step for step in sender.steps}
    assert by_name["a"].parent_id is None
    assert by_name["b"].parent_id == by_name["d"].parent_id == by_name["a"].step_id
    assert by_name["c"].parent_id == by_name["b"].step_id
    assert [by_name[name].phase for name in "abcd"] == ["x", None, None, None]
    assert [by_name[name].kind for name in "abcd"] == ["agent", "tool", "model", "agent"]
    assert sorted(by_name, key=lambda name: by_name[name].step_id) == ["a", "b", "c", "d"]


def test_a_fan_out_of_eight_threads_loses_nothing(
    sender: KeepingSender, recorder: Recorder
) -> None:
    def work(number: int) -> None:
        with run.step("call", parent=root) as step:
            step.set(payload=number, cost_usd="0.000001")

    with (
        recorder,
        recorder.run("p") as run,
        run.step("root") as root,
        ThreadPoolExecutor(8) as pool,
    ):
        list(pool.map(work, range(1_500)))
    calls = [step for step in sender.steps if step.name == "call"]
    assert sorted(json.loads(bytes(step.payload)) for step in calls) == list(range(1_500))  # type: ignore[arg-type]
    assert len({step.step_id for step in sender.steps}) == 1_501
    assert isinstance(sender.events[-1], wire.RunEnded)


def test_async_steps_side_by_side(sender: KeepingSender, recorder: Recorder) -> None:
    async def work(run: Any, number: int) -> None:
        async with run.step(f"s{number}") as step:
            await asyncio.sleep(0)
            step.set(payload=number)
            if number == 3:
                raise ValueError("three")

    async def main() -> None:
        async with recorder.run("p") as run:
            done = await asyncio.gather(
                *(work(run, number) for number in range(8)), return_exceptions=True
            )
            assert [type(d) for d in done].count(ValueError) == 1

    asyncio.run(main())
    recorder.close()
    assert sorted(step.status for step in sender.steps) == ["failed"] + ["succeeded"] * 7


def test_a_cancelled_task_is_recorded_as_cancelled(
    sender: KeepingSender, recorder: Recorder
) -> None:
    async def main() -> None:
        async with recorder.run("p") as run:
            entered = asyncio.Event()

            async def hang() -> None:
                async with run.step("s"):
                    entered.set()
                    await asyncio.Event().wait()

            task = asyncio.create_task(hang())
            await entered.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    recorder.close()
    assert [step.status for step in sender.steps] == ["cancelled"]
    assert sender.ended.status == "succeeded"


def test_a_run_that_is_not_entered_only_adds_steps(
    sender: KeepingSender, recorder: Recorder
) -> None:
    with recorder, recorder.run("p", run_id="shared").step("s"):
        pass
    assert [type(event) for event in sender.events] == [wire.Step]
