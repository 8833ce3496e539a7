"""`runtally dlq` on the embedded AWS: refused events seen, shown, and moved back."""

import json
from typing import Any

import pytest

from functions.core import keys
from local import waiting
from local.stage import Stage
from runtally import wire
from tests import command_line
from tests.build import ended, started, step
from tests.e2e.pipeline import WITHIN_S, Pipeline

pytestmark = pytest.mark.xdist_group("stage")


def told(capsys: pytest.CaptureFixture[str], stage: Stage, *arguments: str) -> Any:
    capsys.readouterr()
    command_line.run("dlq", *arguments, "--json", stage=stage)
    return json.loads(capsys.readouterr().out)


def of_run(
    capsys: pytest.CaptureFixture[str], pipeline: Pipeline, *, but: str = ""
) -> list[dict[str, Any]]:
    """The run's dead letters but one, as soon as there are any; other tests leave some, too."""

    def letters() -> list[dict[str, Any]] | None:
        found = told(capsys, pipeline.stage, "list", "--queue", "events")
        assert found["complete"]
        ours = [letter for letter in found["letters"] if letter["run_id"] == pipeline.ref.run_id]
        return [letter for letter in ours if letter["message_id"] != but] or None

    return waiting.until(letters, WITHIN_S, "no dead letter came")


def one_of(capsys: pytest.CaptureFixture[str], pipeline: Pipeline, *, but: str = "") -> Any:
    (letter,) = of_run(capsys, pipeline, but=but)
    return letter


def test_a_refused_event_is_seen_shown_and_moved_back_and_refused_again(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    mixed = pipeline.body(started(), step(1, cost_usd="-1"), step(2), ended())
    pipeline.send(mixed)
    letter = one_of(capsys, pipeline)
    assert (letter["reason"], letter["field"]) == ("invalid_field", "events[1].cost_usd")
    shown = told(capsys, pipeline.stage, "show", letter["message_id"])
    assert shown["body"] == mixed.decode()
    assert shown["letter"] == letter == one_of(capsys, pipeline), "looking takes nothing"
    moved = told(capsys, pipeline.stage, "redrive", letter["message_id"], "--yes")
    assert moved["queues"] == [{"queue": "events", "moved": 1, "why_not": None}]
    again = one_of(capsys, pipeline, but=letter["message_id"])
    assert (again["reason"], again["field"]) == (letter["reason"], letter["field"])
    assert pipeline.summarised(steps=1).totals.agents_total == 1


def test_what_was_delivered_in_vain_is_stored_once_it_is_moved_back(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    body = pipeline.body(started(), step(1), ended())
    pipeline.stage.sqs.send_message(
        QueueUrl=pipeline.stage.event_queue_dead_letter_url, MessageBody=body.decode()
    )
    assert one_of(capsys, pipeline)["reason"] is None
    moved = told(capsys, pipeline.stage, "redrive", "--all", "--reason", "none")
    assert moved["refused"] == 0
    assert pipeline.summarised(steps=1).totals.agents_total == 1


def test_a_body_that_was_kept_in_the_bucket_comes_back_whole(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    """It does not fit into a message beside the reasons; and ingest may read it there again."""
    small = pipeline.body(started(), step(1, cost_usd="-1"), step(2, payload="x"))
    room = wire.SQS_LIMIT_BYTES - len(small)
    large = small.replace(b'"payload":"x"', b'"payload":"x' + b"y" * room + b'"')
    pipeline.stage.sqs.send_message(
        QueueUrl=pipeline.stage.event_queue_url, MessageBody=large.decode()
    )
    letter = one_of(capsys, pipeline)
    assert letter["kept_as"].startswith(keys.DEAD_LETTERS)
    assert letter["size"] == len(large) == wire.SQS_LIMIT_BYTES
    assert told(capsys, pipeline.stage, "show", letter["message_id"])["body"] == large.decode()
    told(capsys, pipeline.stage, "redrive", letter["message_id"], "--yes")
    again = one_of(capsys, pipeline, but=letter["message_id"])
    assert (again["field"], again["kept_as"]) == ("events[1].cost_usd", letter["kept_as"])
    assert [item[keys.SORT] for item in pipeline.steps()] == [keys.STEP_PREFIX + step(2).step_id]


def test_all_are_moved_one_by_one_where_sqs_cannot(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline.send(pipeline.body(started(), step(1, cost_usd="-1")))
    letter = one_of(capsys, pipeline)
    moved = told(capsys, pipeline.stage, "redrive", "--all", "--queue", "events", "--yes")
    assert moved["queues"] == [{"queue": "events", "moved": moved["wanted"], "why_not": None}]
    assert of_run(capsys, pipeline, but=letter["message_id"])
