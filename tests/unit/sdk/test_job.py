import json
import re
from typing import Any

import msgspec
import pytest

from runtally import wire
from runtally.job import Job, open_job, seal_job

REFUSED_BY_SQS = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
FIELDS: dict[str, Any] = {
    "v": 1,
    "tenant_id": "acme",
    "service_entry": "research",
    "invocation_id": "i-1",
    "deadline_at": 1_795_984_949 * 10**9,
    "input": {"question": "why?"},
}


def job(text: bytes) -> Job:
    return Job(1, "acme", "research", "i-1", 1, msgspec.Raw(text))


@pytest.mark.parametrize(
    "text",
    [
        b"null",
        b'"\xe4\xbd\xa0"',
        b"9007199254740993",
        b"1.10",
        b"1e400",
        b"1" * 5_000,
        b'{"a":1,"a":2}',
        b"[" * 200 + b"]" * 200,
    ],
)
def test_an_input_arrives_as_it_was_written(text: bytes) -> None:
    opened = open_job(seal_job(job(text)))
    assert bytes(opened.input) == text
    assert msgspec.structs.replace(opened, input=msgspec.Raw()) == job(b"")


@pytest.mark.parametrize("character", ["\ufffe", "\uffff", "\x00", "\x1f", "\x7f", "😀"])
def test_no_input_makes_a_body_that_sqs_refuses(character: str) -> None:
    body = seal_job(job(msgspec.json.encode({character: character})))
    assert not REFUSED_BY_SQS.search(body)
    assert msgspec.json.decode(open_job(body).input) == {character: character}


@pytest.mark.parametrize("half", ["\ud800", r"\ud800"])
def test_half_of_a_surrogate_pair_becomes_the_replacement_character(half: str) -> None:
    body = seal_job(job(b'"half"')).replace("half", half)
    assert msgspec.json.decode(open_job(body).input) == "\ufffd"


def test_unknown_fields_are_ignored() -> None:
    assert open_job(json.dumps({**FIELDS, "of": "another version"})).invocation_id == "i-1"


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("v", 2, "unknown_version"),
        ("tenant_id", "a/b", "invalid_field"),
        ("service_entry", "Research", "invalid_field"),
        ("service_entry", "research\n", "invalid_field"),
        ("service_entry", "r" * 33, "invalid_field"),
        ("invocation_id", "", "invalid_field"),
        ("deadline_at", -1, "invalid_field"),
        ("deadline_at", "soon", "invalid_field"),
    ],
)
def test_what_is_no_job_is_refused_by_field(field: str, value: object, reason: str) -> None:
    with pytest.raises(wire.Rejected) as caught:
        open_job(json.dumps({**FIELDS, field: value}))
    assert (caught.value.field, caught.value.reason) == (field, reason)


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_is_needed(field: str) -> None:
    with pytest.raises(wire.Rejected) as caught:
        open_job(json.dumps({name: value for name, value in FIELDS.items() if name != field}))
    assert caught.value.field == field


@pytest.mark.parametrize("body", ["", "no job", "{", '{"v":1,"input":NaN}', "[1]"])
def test_what_is_no_json_object_is_refused(body: str) -> None:
    with pytest.raises(wire.Rejected):
        open_job(body)
