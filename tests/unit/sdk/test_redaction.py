"""With redaction on, what it takes out is found nowhere: sent, spooled or logged. Off, nothing is
any different."""

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtally import JobWorker, Recorder, redaction, wire
from runtally.redaction import FAILED, KEPT, Redactor
from tests.unit.sdk.recording import KeepingSender
from tests.unit.sdk.test_imports import loaded_by
from tests.unit.sdk.test_worker import EVENTS, JOBS, Entry

ADDRESS = "zora@example.com"
GONE = "[redacted:email]"
STEP_ID = "1700000000000000000-0a1b2c3d"


@pytest.fixture
def redacting(sender: KeepingSender) -> Iterator[Recorder]:
    recorder = Recorder(tenant_id="acme", sender=sender, redact=redaction.rules())
    yield recorder
    recorder.close()


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    """All that handlers get to see of a log, tracebacks included."""
    caplog.set_level(logging.DEBUG, "runtally")
    formatter = logging.Formatter("%(message)s")
    return lambda: "\n".join(formatter.format(record) for record in caplog.records)


class Rude:
    def __str__(self) -> str:
        return f"mail {ADDRESS}"

    def __index__(self) -> int:
        raise TypeError(f"{ADDRESS} is no number")


def record_everything(recorder: Recorder, text: str, run_id: str | None = None) -> None:
    """A run with `text` wherever there is place for one, valid or not."""
    mess: dict[str, Any] = {
        text: [text, {"a": {text: f"<{text}>"}}, 9007199254740993, 1.50, None],
        "json": json.dumps({text: text}),
    }
    attributes: Any = {text: text, "list": [text, 1], "dict": {text: text}, "rude": Rude()}
    run = recorder.run(
        text,
        run_id=run_id,
        attributes=attributes,
        session_id=text,
        stale_after_s=Rude(),  # type: ignore[arg-type]
    )
    with pytest.raises(ValueError, match="boom"), run:  # noqa: PT012 - one run
        run.log(text, f"to {text}")
        with run.step(text, phase=text, agent=text, kind=text, attributes=attributes) as step:
            step.set(model=text, provider=text, session_id=text, price_table=text, payload=mess)
            step.set(cost_usd=text, input_tokens=Rude(), payload=mess)  # type: ignore[arg-type]
            step.fail(text)
        with run.step(text, parent=text):
            pass
        run.result = {text: text}
        raise ValueError(f"boom {text}")


def test_an_address_is_found_nowhere(
    redacting: Recorder, sender: KeepingSender, logged: Callable[[], str]
) -> None:
    record_everything(redacting, ADDRESS, run_id=ADDRESS)
    redacting.flush()
    sent = b"\n".join(sender.bodies).decode()
    assert "zora" not in sent + logged()
    assert GONE in sent
    assert GONE in logged()
    assert len(sender.steps) == 2
    assert sender.started.session_id == GONE
    assert (sender.started.attributes or {})["runtally.run_id"] == GONE
    assert sender.ended.error == f"ValueError: boom {GONE}"
    assert sender.ended.result == json.dumps({GONE: GONE}, separators=(",", ":"))


def test_it_is_in_no_spool_either(tmp_path: Path, sender: KeepingSender) -> None:
    sender.down = True
    with Recorder(
        tenant_id="acme", sender=sender, spool_dir=tmp_path, redact=redaction.rules()
    ) as recorder:
        record_everything(recorder, ADDRESS)
    spooled = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert GONE.encode() in spooled
    assert b"zora" not in spooled + b"".join(sender.attempts)


def test_numbers_and_structure_stay_byte_for_byte(
    redacting: Recorder, sender: KeepingSender
) -> None:
    payload = (
        '{"n":9007199254740993,"f":1.50,"e":1E400,"card":4111111111111111,"k":"a\\u0062\\/",'
        '"k":"twice","%s":["%s","\\ud83d\\ude00"],"é":"zora\\u0040example.com"}'
    )
    with redacting.run("p") as run, run.step("s") as step:
        step.set(payload=msgspec.Raw((payload % (ADDRESS, ADDRESS)).encode()))
    redacting.flush()
    expected = (payload % (GONE, GONE)).replace("zora\\u0040example.com", GONE)
    (step_sent,) = sender.steps
    assert isinstance(step_sent.payload, msgspec.Raw)
    assert bytes(step_sent.payload).decode() == expected


def line_of(redact: Callable[[str], str], **fields: Any) -> Any:
    event = {"type": "step", "step_id": STEP_ID, "kind": "tool", "status": "failed"} | fields
    return json.loads(Redactor(redact).line(msgspec.json.encode(event)))


def test_keys_that_would_become_one_are_numbered_alike_throughout_an_event() -> None:
    keys = {"a@example.com": 1, "b@example.com": 2, "x": {"b@example.com": 3}}
    line = line_of(redaction.rules(), attributes=keys, payload=keys)
    numbered = {GONE: 1, f"{GONE} 2": 2, "x": {f"{GONE} 2": 3}}
    assert (line["attributes"], line["payload"]) == (numbered, numbered)


def test_a_field_that_the_wire_format_does_not_know_and_one_that_comes_twice() -> None:
    twice = b'"name":"zora@example.com","name":"x"'
    line = b'{"type":"step",' + twice + b',"zora@example.com":"to zora@example.com"}'
    redacted = Redactor(redaction.rules()).line(line)
    assert redacted == b'{"type":"step","name":"x","[redacted:email]":"to [redacted:email]"}'


def test_what_keeps_its_form_is_what_has_one() -> None:
    """Of all strings in the wire format: those with a pattern, and those of which there are few."""
    events = (wire.RunStarted, wire.Step, wire.RunLog, wire.RunEnded, wire.InvocationEnded)
    schema = msgspec.json.schema_components(list(events))[1]
    formed = {"parent_id", "type"}
    for event in events:
        for name, field in schema[event.__name__]["properties"].items():
            kinds = field.get("anyOf", [field])
            if any(kind.keys() & {"pattern", "enum"} for kind in kinds):
                formed.add(name)
    assert formed == KEPT


FORMED = {"cost_computed_usd", "cost_usd", "invocation_id", "kind", "log_id", "parent_id", "status"}


@pytest.mark.parametrize("name", sorted(FORMED | {"step_id"}))
@pytest.mark.parametrize("value", [ADDRESS, {"x": ADDRESS}, [ADDRESS], {ADDRESS: 1}])
def test_a_field_of_another_event_is_a_text(name: str, value: Any) -> None:
    """Its form was not checked in this one."""
    event = {"type": "run.started", "at": 1, "pipeline": "p", name: value}
    if name == "status":  # of a step it is declared, but such a step is refused
        event["type"] = "step"
    redacted = Redactor(redaction.rules()).line(msgspec.json.encode(event))
    assert json.loads(redacted) == json.loads(json.dumps(event).replace(ADDRESS, GONE))


def test_what_has_its_form_never_reaches_the_function() -> None:
    seen: list[str] = []
    step = wire.Step(
        step_id=STEP_ID, name="n", kind="tool", status="failed", started_at=1, ended_at=2,
        parent_id="0123456789a", cost_usd="1.5", cost_computed_usd="2",
    )  # fmt: skip
    assert Redactor(lambda text: seen.append(text) or text).event(step) is step  # type: ignore[func-returns-value]
    assert seen == ["n"]


def test_keys_are_numbered_past_those_that_stay() -> None:
    keys = {"a@example.com": 1, GONE: 2, "b@example.com": 3, f"{GONE} 3": 4}
    line = line_of(redaction.rules(), payload=keys)
    assert line["payload"] == {f"{GONE} 2": 1, GONE: 2, f"{GONE} 4": 3, f"{GONE} 3": 4}
    redacted = Redactor(lambda text: text.replace("other", "name")).line(
        b'{"type":"step","other":"x","name":"y"}'
    )
    assert redacted == b'{"type":"step","name 2":"x","name":"y"}'


def always_fails(text: str) -> str:
    raise KeyError(text)


@pytest.mark.parametrize("redact", [lambda _: "***", always_fails], ids=["same", "fails"])
def test_the_wire_format_s_own_names_stay_whatever_becomes_of_such_keys(
    sender: KeepingSender, redact: Callable[[str], str]
) -> None:
    own = {"type": 1, "step_id": 2, "model": "m", "v": 3}
    with Recorder(tenant_id="acme", sender=sender, redact=redact) as recorder:
        with recorder.run("p", attributes=own) as run, run.step("s") as step:
            step.set(model="gpt", attributes=own, payload=own)
            run.result = own
        recorder.flush()
    (sent,) = sender.steps
    gone = redaction.Redactor(redact).text("")
    assert (sent.name, sent.model) == (gone, gone)
    keys = {gone, f"{gone} 2", f"{gone} 3", f"{gone} 4"}
    assert (sent.attributes or {}).keys() == keys
    assert isinstance(sent.payload, msgspec.Raw)
    assert json.loads(bytes(sent.payload)).keys() == keys
    assert json.loads(sender.ended.result or "").keys() == keys
    assert sender.started.pipeline == gone


NUMBER = 4242424242424242
OPEN_KEY = "-----BEGIN PRIVATE" + " KEY-----\nMIIE"


@pytest.mark.parametrize(
    ("said", "redacted"),
    [
        ({"order_id": NUMBER}, {"order_id": NUMBER}),
        ({"key": OPEN_KEY, "n": 1.50}, {"key": "[redacted:key]", "n": 1.5}),
        ([{"a@example.com": 1, "b@example.com": f"card {NUMBER}"}],
         [{GONE: 1, f"{GONE} 2": "card [redacted:card]"}]),
    ],
)  # fmt: skip
def test_what_was_written_as_json_stays_json(
    redacting: Recorder, sender: KeepingSender, said: Any, redacted: Any
) -> None:
    with redacting.run("p", attributes={"said": {"x": said}, "list": [{"x": said}]}) as run:
        run.result = said
    redacting.flush()
    assert json.loads(sender.ended.result or "") == redacted
    attributes: Any = sender.started.attributes
    assert json.loads(attributes["said"]) == {"x": redacted}
    assert [json.loads(each) for each in attributes["list"]] == [{"x": redacted}]


@pytest.mark.parametrize(
    ("said", "redacted"),
    [
        ('{ "n" : 1 }', '{ "n" : 1 }'),
        ('{ "to" : "zora@example.com", "n" : 1.50 }', '{"to":"[redacted:email]","n":1.50}'),
        ("[zora@example.com] wrote", "[[redacted:email]] wrote"),
        ('{"to": "zora@example.com"', '{"to": "[redacted:email]"'),
        (f"{NUMBER}", "[redacted:card]"),
        ("[" * 100_000 + "zora@example.com", "[" * 100_000 + GONE),
    ],
    ids=["nothing found", "json", "no json", "cut", "a number", "deep"],
)
def test_texts_that_look_like_json(said: str, redacted: str) -> None:
    assert line_of(redaction.rules(), result=said)["result"] == redacted


@pytest.mark.parametrize("space", ["", " ", "\n\t "])
def test_keys_are_told_by_their_colon_wherever_it_stands(space: str) -> None:
    written = f'{{"a@b.com"{space}: 1,{space}"c@d.com"{space}:{space}"e@f.com"}}'
    step = wire.Step(step_id=STEP_ID, name="n", kind="tool", status="failed", started_at=1,
                     ended_at=2, payload=msgspec.Raw(written.encode()))  # fmt: skip
    redacted = Redactor(redaction.rules()).event(step)
    assert isinstance(redacted.payload, msgspec.Raw)
    assert bytes(redacted.payload).decode() == f'{{"{GONE}":1,"{GONE} 2":"{GONE}"}}'
    line = wire.encode_event(msgspec.structs.replace(step, payload=msgspec.Raw(b'{"a" : 1}')))
    assert Redactor(redaction.rules()).line(line) is line


def test_a_function_that_always_fails_says_so_once(logged: Callable[[], str]) -> None:
    redactor = Redactor(always_fails)
    assert [redactor.text("secret"), redactor.text("secret")] == [FAILED, FAILED]
    assert logged() == f"runtally: texts become {FAILED}, since redacting them fails: KeyError"


def test_a_formatter_that_tells_exceptions_its_own_way_keeps_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = logging.getLogger("of a function")
    redactor = Redactor(redaction.rules(), formatted=[log.name])
    error = ValueError("boom")
    log.error("of %s", ADDRESS, exc_info=error)
    (record,) = caplog.records
    assert redactor.failed == 0
    assert record.getMessage() == f"of {GONE}"
    assert record.exc_info is not None
    assert record.exc_info[1] is error


def test_a_function_that_fails_costs_the_text_and_leaks_none(
    sender: KeepingSender, logged: Callable[[], str]
) -> None:
    def fails(text: str) -> str:
        if "secret" in text:
            raise ValueError(f"cannot redact {text}")
        return None if text == "no text" else text  # type: ignore[return-value]

    recorder = Recorder(tenant_id="acme", sender=sender, redact=fails)
    with recorder.run("p", attributes={"secret 1": 1, "secret 2": "x"}) as run:
        with run.step("secret", phase="plan") as step:
            step.set(payload={"secret": "no text", "n": 1})
            step.set(cost_usd="secret")
        run.result = "fine"
    recorder.close()
    (step_sent,) = sender.steps
    assert (step_sent.name, step_sent.phase) == (FAILED, "plan")
    assert json.loads(bytes(step_sent.payload)) == {FAILED: FAILED, "n": 1}  # type: ignore[arg-type]
    assert sender.started.attributes == {FAILED: 1, f"{FAILED} 2": "x"}
    assert sender.ended.result == "fine"
    assert "secret" not in logged()
    assert logged().count("since redacting them fails: ValueError") == 1


def test_logs_are_redacted_before_they_are_cut_and_with_their_tracebacks(
    redacting: Recorder, logged: Callable[[], str]
) -> None:
    log = logging.getLogger("runtally")
    assert redacting
    error = ValueError(f"of {ADDRESS}")
    log.error("%.5s and %.5s, %d and %r", ADDRESS, error, 7, "x", exc_info=error)
    assert logged().startswith("[reda and of [r, 7 and 'x'")
    assert f"ValueError: of {GONE}" in logged()
    assert "zora" not in logged()


def test_logs_are_left_alone_when_the_last_recorder_is_gone(logged: Callable[[], str]) -> None:
    redactor = Redactor(lambda text: f"{text}, redacted")
    log = logging.getLogger("runtally")
    log.warning("while it lives")
    del redactor
    log.warning("and after")
    assert logged() == "while it lives, redacted\nand after"


@given(st.text(), st.recursive(st.text() | st.integers() | st.none(), lambda inner:
       st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))  # fmt: skip
def test_what_a_function_gives_back_is_what_is_recorded(name: str, payload: Any) -> None:
    """Any text, lone surrogates too; and the same event gives the same bytes."""
    redactor = Redactor(lambda text: f"<{text}\ud800>")
    raw = msgspec.Raw(json.dumps(payload, separators=(",", ":")).encode())
    step = wire.Step(
        step_id=STEP_ID, name=name.encode("utf-8", "replace").decode(), kind="tool",
        status="failed", started_at=1, ended_at=2, payload=raw,
    )  # fmt: skip
    redacted = redactor.event(step)
    assert redacted == redactor.event(step)
    assert redacted.name == f"<{step.name}\ufffd>"
    assert msgspec.structs.replace(redacted, name=None, payload=raw) == msgspec.structs.replace(
        step, name=None
    )


def test_off_the_bytes_are_those_of_before_and_nothing_is_imported(
    sender: KeepingSender, recorder: Recorder
) -> None:
    step = wire.Step(step_id=STEP_ID, kind="tool", status="failed", started_at=1, ended_at=2,
                     name=ADDRESS)  # fmt: skip
    recorder.record_events("r", [step], at_once=True)
    recorder.flush()
    assert sender.bodies == [wire.seal(wire.Head(1, "acme", "r"), [wire.encode_event(step)])]
    made = "from runtally import Recorder; Recorder(tenant_id='a', queue_url='https://queue')"
    assert not {m for m in loaded_by(made) if "redact" in m or "detect" in m or "managed" in m}


def test_the_environment_asks_for_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTALLY_TENANT_ID", "acme")
    monkeypatch.setenv("RUNTALLY_QUEUE_URL", "https://queue")
    assert Recorder.from_environment()._outbox.redactor is None
    monkeypatch.setenv("RUNTALLY_REDACT", "rules")
    redactor = Recorder.from_environment()._outbox.redactor
    assert redactor is not None
    assert redactor.text(ADDRESS) == GONE
    monkeypatch.setenv("RUNTALLY_REDACT", "yes")
    with pytest.raises(ValueError, match="only rules"):
        Recorder.from_environment()


def test_answers_to_invocations(logged: Callable[[], str]) -> None:
    entry = Entry()
    entry.worker = JobWorker(
        job_queue_url=JOBS,
        queue_url=EVENTS,
        sqs=cast("Any", entry.sqs),
        clock=entry.clock,
        redact=redaction.rules(),
    )
    entry.invoke(json.dumps({"to": ADDRESS}).encode())
    with entry.receive() as job:
        assert job.input == {"to": ADDRESS}
        job.fail(f"no {ADDRESS}", {ADDRESS: ADDRESS, "order_id": NUMBER})
    result = f'{{"{GONE}":"{GONE}","order_id":{NUMBER}}}'
    assert entry.answers == [wire.InvocationEnded("i-1", "failed", result, f"no {GONE}")]
    assert "zora" not in logged()
