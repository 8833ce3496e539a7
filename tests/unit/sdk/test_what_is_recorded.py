from typing import Any

import msgspec
import pytest

from runtally import Recorder, wire
from tests.unit.sdk.recording import KeepingSender


@pytest.mark.parametrize(
    ("result", "recorded"),
    [(None, None), ("as it is", "as it is"), ([1], "[1]"), (0, "0"), ("\ud800", "\ufffd")],
)
def test_a_result_is_text_or_json(
    sender: KeepingSender, recorder: Recorder, result: object, recorded: str | None
) -> None:
    with recorder, recorder.run("p") as run:
        run.result = result
    assert sender.ended.result == recorded


def test_a_payload_is_what_it_was_when_it_was_set(
    sender: KeepingSender, recorder: Recorder
) -> None:
    with recorder, recorder.run("p") as run, run.step("s") as step:
        messages = [1]
        step.set(payload=messages)
        messages.append(2)
    assert sender.steps[0].payload == msgspec.Raw(b"[1]")


def test_no_payload_and_a_payload_of_none_differ(sender: KeepingSender, recorder: Recorder) -> None:
    with recorder, recorder.run("p") as run:
        with run.step("s") as step:
            step.set(payload=None)
        with run.step("t"):
            pass
    assert [step.payload for step in sender.steps] == [msgspec.Raw(b"null"), msgspec.UNSET]


def test_an_id_that_the_wire_refuses_is_replaced_and_kept_as_an_attribute(
    sender: KeepingSender, recorder: Recorder
) -> None:
    with recorder:
        first = recorder.run("p", run_id="../#/日本", buckets=100)
        assert first.run_id == recorder.run("p", run_id="../#/日本").run_id
        with first:
            pass
    assert sender.started.attributes == {"runtally.run_id": "../#/日本"}
    assert wire.open_message(sender.bodies[0].decode()).head.buckets == 1


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("for the test")

    __repr__ = __str__


def test_no_value_whatever_makes_the_agent_fail(sender: KeepingSender, recorder: Recorder) -> None:
    odd: Any = Unprintable()
    with (
        recorder,
        recorder.run(
            odd, run_id=None, attributes=odd, session_id=odd, stale_after_s=odd, buckets=odd
        ) as run,
    ):
        with run.step(odd, phase=odd, agent=odd, kind=odd, parent=odd, attributes=odd) as step:
            step.set(model=odd, input_tokens=odd, cost_usd=odd, attributes=odd, payload=odd)
            step.fail(odd)
        run.log(odd)
        run.result = odd
        run.fail(odd)
    (recorded,) = sender.steps
    assert recorded.kind == "agent"
    assert recorded.status == "failed"


def test_an_exception_without_a_text_is_recorded_by_its_type(
    sender: KeepingSender, recorder: Recorder
) -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("for the test")

    with recorder, recorder.run("p") as run, pytest.raises(MuteError), run.step("s"):
        raise MuteError
    assert sender.steps[0].error == "MuteError"


def test_an_end_is_recorded_once(sender: KeepingSender, recorder: Recorder) -> None:
    with recorder:
        step = recorder.run("p").step("s")
        step.start()
        step.end(ValueError("first"))
        step.end()
    assert [s.error for s in sender.steps] == ["ValueError: first"]
