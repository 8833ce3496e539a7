"""A dead letter whose body lies in the bucket is moved back as its note: ingest reads the body."""

import hashlib
import json
from typing import Any

import pytest

from functions.core import dead_letters, keys
from functions.core.dead_letters import KeptAside
from tests.build import RUN, body, started, step
from tests.memory_stage import MemoryStage


def kept(stage: MemoryStage, text: str) -> KeptAside:
    content = text.encode()
    key = keys.dead_letter_object(hashlib.sha256(content).hexdigest())
    stage.s3.put_object(Key=key, Body=content)
    return KeptAside(key, len(content))


def test_what_the_note_stands_for_is_recorded_as_if_it_had_come_itself() -> None:
    stage, plain = MemoryStage(), MemoryStage()
    text = body(started(), step(1, payload="你好 \u0000"), step(2))
    assert stage.ingest(dead_letters.note(kept(stage, text))) == []
    assert plain.ingest(text) == []
    assert stage.items_of(RUN) == plain.items_of(RUN)
    assert stage.dead_letters() == []


def test_a_note_of_the_first_form_is_read_too() -> None:
    stage = MemoryStage()
    aside = kept(stage, body(step(1)))
    assert stage.ingest(json.dumps({"dead_letter": {"key": aside.key, "bytes": aside.bytes}})) == []
    assert len(stage.items_of(RUN, keys.STEP_PREFIX)) == 1


def test_what_is_refused_again_is_kept_anew_with_the_reasons_of_today() -> None:
    stage = MemoryStage()
    refused, good = step(1, cost_usd="-1"), step(2, payload="x" * 1_048_000)
    aside = kept(stage, body(refused, good))
    assert stage.ingest(dead_letters.note(aside)) == []
    (letter,) = stage.dead_letters()
    assert (letter["field"], letter["body"]) == ("events[0].cost_usd", dead_letters.note(aside))
    # Put once more, so that it expires a whole life of a letter from now.
    assert len(stage.s3.older[aside.key]) == 1
    assert stage.s3.objects[aside.key] == stage.s3.older[aside.key][0].content
    assert len(stage.items_of(RUN, keys.STEP_PREFIX)) == 1


def test_what_is_refused_again_and_fits_beside_its_reasons_is_a_letter_as_any_other() -> None:
    stage = MemoryStage()
    text = body(step(1, cost_usd="-1"))
    assert stage.ingest(dead_letters.note(kept(stage, text))) == []
    assert [letter["body"] for letter in stage.dead_letters()] == [text]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"key": "dead-letters/none"}, "dead_letter.key"),
        ({"bytes": 3}, "dead_letter.bytes"),
        ({"bytes": 2**30}, "dead_letter"),
        ({"key": "agent-runs/acme/run-1/secret"}, "dead_letter"),
        ({"key": "dead-letters/other"}, "dead_letter.key"),
    ],
)
def test_it_stands_for_nothing_but_what_was_kept_aside(wrong: dict[str, Any], field: str) -> None:
    stage = MemoryStage()
    text = body(step(1))
    aside = kept(stage, text)
    for key in ("agent-runs/acme/run-1/secret", "dead-letters/other"):
        stage.s3.put_object(Key=key, Body=text.encode())
    note = {"dead_letter": {"key": aside.key, "bytes": aside.bytes} | wrong}
    assert stage.ingest(json.dumps(note, separators=(",", ":"))) == []
    (letter,) = stage.dead_letters()
    assert (letter["reason"], letter["field"]) == ("invalid_claim", field)
    assert stage.items_of(RUN) == []


@pytest.mark.parametrize("text", ['{"dead_letter":', '{"dead_letter":7}', '{"dead_letter":{}}'])
def test_what_only_looks_like_a_note_is_refused_as_any_other_body(text: str) -> None:
    stage = MemoryStage()
    assert stage.ingest(text) == []
    assert len(stage.dead_letters()) == 1
