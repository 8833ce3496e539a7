"""Converted trajectories against sums over the raw files, made here with `json` and `re` alone."""

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from local.trajectories import RecordedRun, UnknownTrajectory, load
from local.trajectories.fields import MADE_UP_START
from runtally import wire

SAMPLES = Path(__file__).parents[4] / "shared" / "samples" / "trajectories"
MINI_SWE = "mini-swe-agent.sqlfluff-1733.traj.json"
SWE_2024 = "swe-agent.pydicom-1458.traj"
SWE_2025 = "swe-agent.marshmallow-1867.function_calling.traj"
TAU = "tau-bench.gpt-4o-airline.subset.json"
WHO = "who-and-when.hand-crafted-56.json"
FILES = (MINI_SWE, SWE_2024, SWE_2025, TAU, WHO)

STRING_OR_SPACE = re.compile(r'("(?:[^"\\]|\\.)*")|\s+')


def sample(name: str) -> Path:
    path = SAMPLES / name
    if not path.exists():
        pytest.skip(f"the public trajectory {name} is not on this machine")
    return path


def document(name: str) -> Any:
    """The file with each decimal as the text it is."""
    return json.loads(sample(name).read_text(), parse_float=str)


def records(name: str, array: str) -> list[list[bytes]]:
    """Each array of that name in the file, as the minified text of its elements."""
    text = STRING_OR_SPACE.sub(lambda m: m[1] or "", sample(name).read_text())
    found = []
    for opening in re.finditer(rf'"{array}":\[', text):
        at, elements = opening.end(), []
        while text[at] != "]":
            end = json.JSONDecoder().raw_decode(text, at)[1]
            elements.append(text[at:end].encode())
            at = end + (text[end] == ",")
        found.append(elements)
    return found


def steps_of(run: RecordedRun) -> list[wire.Step]:
    return [event for event in run.events if isinstance(event, wire.Step)]


def payloads_of(run: RecordedRun) -> list[bytes]:
    return [bytes(step.payload) for step in steps_of(run) if isinstance(step.payload, Raw)]


def only_run(name: str) -> RecordedRun:
    (run,) = load(sample(name))
    return run


def started(run: RecordedRun) -> wire.RunStarted:
    assert isinstance(run.events[0], wire.RunStarted)
    return run.events[0]


def ended(run: RecordedRun) -> wire.RunEnded:
    assert isinstance(run.events[-1], wire.RunEnded)
    return run.events[-1]


def test_mini_swe_agent_sums_are_those_of_the_file() -> None:
    run = only_run(MINI_SWE)
    messages = document(MINI_SWE)["messages"]
    calls = [m["extra"] for m in messages if m["role"] == "assistant"]
    commands = [m["extra"] for m in messages if m["role"] == "tool"]
    usages = [call["response"]["usage"] for call in calls]
    assert (len(calls), len(commands)) == (157, 156)

    cost = sum(round(Decimal(call["cost"]), 18) for call in calls)
    expected = run.expected
    assert expected.steps == 313
    assert expected.failed == sum(c["returncode"] != 0 for c in commands) == 19
    assert expected.cost_usd == cost
    assert expected.cost_unknown == len(commands)
    assert expected.input_tokens == sum(u["prompt_tokens"] for u in usages) == 8_719_118
    assert expected.output_tokens == sum(u["completion_tokens"] for u in usages) == 61_187
    assert expected.cached_tokens == sum(u["prompt_cache_hit_tokens"] for u in usages)
    stated = Decimal(document(MINI_SWE)["info"]["model_stats"]["instance_cost"])
    assert abs(cost - stated) < Decimal("1e-15")


def test_mini_swe_agent_costs_keep_every_digit_that_fits() -> None:
    written = [m["extra"]["cost"] for m in document(MINI_SWE)["messages"] if "tool_calls" in m]
    sent = [step.cost_usd for step in steps_of(only_run(MINI_SWE)) if step.kind == "model"]
    assert "0.00014167999999999999" in written
    assert sent[written.index("0.00014167999999999999")] == "0.000141680000000000"
    assert [c for c in sent if c in written] == [c for c in written if len(c) <= len("0.") + 18]


def test_mini_swe_agent_times_are_exact_nanoseconds() -> None:
    steps = steps_of(only_run(MINI_SWE))
    extras = [message.get("extra", {}) for message in document(MINI_SWE)["messages"]]
    ends = [int(Decimal(e["timestamp"]) * 10**9) for e in extras if "timestamp" in e]
    assert ends[0] == 1_776_224_990_368_188_600
    assert [step.ended_at for step in steps] == ends
    assert [step.started_at for step in steps] == [1_776_224_988_000_000_000, *ends[:-1]]
    assert [int(step.step_id[:19]) for step in steps] == [step.started_at for step in steps]


def test_mini_swe_agent_has_every_message_in_one_payload() -> None:
    (messages,) = records(MINI_SWE, "messages")
    assert len(messages) == 316
    first = b"[" + b",".join(messages[:3]) + b"]"
    last = b"[" + b",".join(messages[-2:]) + b"]"
    run = only_run(MINI_SWE)
    assert payloads_of(run) == [first, *messages[3:-2], last]
    assert run.expected.payload_bytes == sum(map(len, messages)) + 2 * len("[]") + 3


def test_mini_swe_agent_names_model_session_and_result() -> None:
    run = only_run(MINI_SWE)
    info = document(MINI_SWE)["info"]
    models = {(s.kind, s.model, s.provider) for s in steps_of(run)}
    assert models == {("model", "deepseek-chat", "deepseek"), ("tool", None, None)}
    assert {s.session_id for s in steps_of(run)} == {"sqlfluff__sqlfluff-1733"}
    assert (ended(run).status, ended(run).result) == ("succeeded", info["submission"])
    assert (started(run).attributes or {})["instance_cost"] == "0.2811269720000001"


@pytest.mark.parametrize(("name", "count", "refused"), [(SWE_2024, 12, 3), (SWE_2025, 11, 1)])
def test_swe_agent_entries_are_steps_of_unknown_cost(name: str, count: int, refused: int) -> None:
    run = only_run(name)
    entries = document(name)["trajectory"]
    edits = [e for e in entries if "introduced new syntax error" in e["observation"][:60]]
    (raw,) = records(name, "trajectory")
    expected = run.expected
    assert (expected.steps, expected.failed) == (len(entries), len(edits)) == (count, refused)
    assert (expected.cost_usd, expected.cost_unknown) == (None, count)
    assert payloads_of(run) == raw
    assert expected.payload_bytes == sum(map(len, raw))
    stats = document(name)["info"]["model_stats"]
    attributes = started(run).attributes or {}
    assert attributes["instance_cost"] == str(stats["instance_cost"])
    assert attributes["tokens_sent"] == stats["tokens_sent"]
    assert ended(run).result == document(name)["info"]["submission"]


def test_swe_agent_steps_last_as_long_as_the_file_says() -> None:
    steps = steps_of(only_run(SWE_2025))
    took = [int(Decimal(e["execution_time"]) * 10**9) for e in document(SWE_2025)["trajectory"]]
    assert [step.ended_at - step.started_at for step in steps] == took
    assert steps[0].started_at == MADE_UP_START
    seconds = [s.ended_at - s.started_at for s in steps_of(only_run(SWE_2024))]
    assert seconds == [1_000_000_000] * 12


def test_tau_bench_results_are_runs() -> None:
    runs = load(sample(TAU))
    results = document(TAU)
    assert len(runs) == len({run.run_id for run in runs}) == len(results) == 10
    for run, result, raw in zip(runs, results, records(TAU, "traj"), strict=True):
        acts = [m for m in result["traj"] if m["role"] != "system"]
        errors = [m for m in acts if m["role"] == "tool" and str(m["content"]).startswith("Error")]
        expected = run.expected
        assert (expected.steps, expected.failed) == (len(acts), len(errors))
        assert (expected.cost_usd, expected.cost_unknown) == (None, len(acts))
        assert payloads_of(run) == [b"[" + raw[0] + b"," + raw[1] + b"]", *raw[2:]]
        assert expected.payload_bytes == sum(map(len, raw)) + len("[,]")
        texts = [s.error for s in steps_of(run) if s.status == "failed"]
        assert texts == [m["content"] for m in errors]
        assert ended(run).status == ("succeeded" if result["reward"] == "1.0" else "failed")
        cost = (started(run).attributes or {}).get("user_cost")
        assert cost == result["info"]["user_cost"]
    assert sum(run.expected.failed for run in runs) == 21


def test_who_and_when_names_the_agent_at_fault() -> None:
    run = only_run(WHO)
    case = document(WHO)
    (raw,) = records(WHO, "history")
    assert run.expected.steps == len(case["history"]) == 129
    assert (run.expected.failed, run.expected.cost_unknown) == (0, 129)
    assert payloads_of(run) == raw
    steps = steps_of(run)
    assert [step.name for step in steps] == [entry["role"] for entry in case["history"]]
    assert {s.agent for s in steps} == {"human", "Orchestrator", "WebSurfer", "Assistant"}
    (fault,) = [step for step in steps if step.attributes]
    assert fault.attributes == {"at_fault": True, "reason": case["mistake_reason"]}
    assert (fault.agent, steps.index(fault)) == (case["mistake_agent"], int(case["mistake_step"]))
    assert ended(run).status == "failed"


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("per_message", [1, 10, 1_000])
def test_bodies_open_and_hold_the_events_in_order(name: str, per_message: int) -> None:
    for run in load(sample(name), tenant_id="acme"):
        opened = [wire.open_message(body.decode()) for body in run.messages(per_message)]
        lines = [line for message in opened for line in message.lines]
        assert [wire.decode_event(line, "") for line in lines] == list(run.events)
        assert {(m.head.tenant_id, m.head.run_id) for m in opened} == {("acme", run.run_id)}
        assert max(len(message.lines) for message in opened) <= per_message
        ids = [step.step_id for step in steps_of(run)]
        assert ids == sorted(set(ids))


@pytest.mark.parametrize("name", FILES)
def test_the_same_file_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    copy = tmp_path / "renamed"
    copy.write_bytes(sample(name).read_bytes())
    assert [r.messages() for r in load(copy)] == [r.messages() for r in load(sample(name))]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"not JSON",
        b'{"trajectory_format":"mini-swe-agent-1.1","messages":[]}',
        b'{"trajectory":[],"history":[],"info":{}}',
    ],
)
def test_a_file_of_no_known_shape_is_refused_by_name(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "strange.json"
    path.write_bytes(content)
    with pytest.raises(UnknownTrajectory, match=r"strange\.json: "):
        load(path)


def test_only_tools_fail_in_tau_bench(tmp_path: Path) -> None:
    said = {"role": "user", "content": "Error is what I see."}
    result = {"role": "tool", "name": "book", "content": "Error: sold out"}
    run = {"task_id": 1, "trial": 0, "reward": 1.0, "info": {}, "traj": [said, result]}
    path = tmp_path / "tau.json"
    path.write_text(json.dumps([run]))
    (converted,) = load(path)
    assert [step.status for step in steps_of(converted)] == ["succeeded", "failed"]
