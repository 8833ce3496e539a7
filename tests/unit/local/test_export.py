"""`runtally export`: rows in files, exact, whole or not at all, written again only when needed."""

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from functions.core import keys, lake
from local import export_manifest, file_names
from local.commands import LocalStageError
from local.export_manifest import Entry, Manifest
from tests.build import RUN, SECOND, T0, ended, started, step, step_id
from tests.fakes.calls import client_error
from tests.unit.local.terminal import Terminal

DAY = 86_400 * SECOND
TODAY = "2026-11-29"
COST = "123456789012.000000000000000001"


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / "a [lake] of 'mine'"


def recorded(terminal: Terminal) -> None:
    steps = [step(n, phase=f"phase {n % 2}", cost_usd=f"0.{n:018}") for n in range(1, 5)]
    terminal.record("run-1", started(attributes={"team": "你"}), *steps, ended())
    failed = step(1, status="failed", error="no\n\0", cost_usd=COST, input_tokens=7)
    terminal.record("run-2", started(T0 + SECOND, "translate"), failed, ended(status="failed"))
    terminal.record("open", started(T0 + 2 * SECOND), step(1))
    terminal.record("without-calls", started(T0 + 3 * SECOND), ended())
    terminal.record("run-1", started(), step(1), ended(), tenant="globex")


def files(folder: Path) -> set[str]:
    """What anyone who reads the folder may take for rows."""
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return {name for name in found if not name.startswith("export-manifest")}


def in_each_table(run_id: str, day: str = TODAY, suffix: str = ".parquet") -> set[str]:
    return {lake.place_of(t, RUN._replace(run_id=run_id), day) + suffix for t in lake.TABLES}


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    with duckdb.connect() as database:
        found = database.read_parquet(
            [str(path) for path in sorted((folder / table).rglob("*.parquet"))],
            hive_partitioning=False,
        )
        names = found.columns
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def test_ended_runs_of_the_tenant_are_written_and_open_ones_counted(
    terminal: Terminal, into: Path
) -> None:
    recorded(terminal)
    answer = terminal.json("export", "--tenant", "acme", "--into", str(into))
    assert answer == {
        "folder": str(into), "format": "parquet", "exported": 3, "calls": 5, "unchanged": 0,
        "open": 1, "failed": [], "pruned": 0,
    }  # fmt: skip
    ids = ("run-1", "run-2", "without-calls")
    assert files(into) == {name for run_id in ids for name in in_each_table(run_id)}
    one, two, none = rows(into, "runs")
    assert one["cost_usd_total"] == Decimal("0.000000000000000010")
    assert (two["cost_usd_total"], two["status"], two["pipeline"]) == (
        Decimal(COST), "failed", "translate",
    )  # fmt: skip
    assert json.loads(one["attributes"]) == {"team": "你"}
    assert (none["agents_total"], none["cost_usd_total"]) == (0, 0)
    assert (one["started_ns"], one["day"]) == (T0, TODAY)
    assert one["started_at"].isoformat() == "2026-11-29T23:53:20"
    assert [row["error"] for row in rows(into, "calls")] == [*[None] * 4, "no\n\0"]
    assert [row["calls"] for row in rows(into, "phases")] == [2, 2, 1]


def test_every_column_is_what_the_table_has(terminal: Terminal, into: Path) -> None:
    fields: dict[str, Any] = {
        "kind": "tool", "status": "failed", "phase": "act", "name": "search", "agent": "finder",
        "model": "m-large", "provider": "p", "session_id": "s-1", "parent_id": step_id(1),
        "input_tokens": 5, "output_tokens": 4, "cached_tokens": 3, "cache_write_tokens": 2,
        "reasoning_tokens": 1, "error": "no", "cost_computed_usd": "0.5", "price_table": "t",
    }  # fmt: skip
    terminal.record("run-1", started(), step(2, **fields, payload={"n": 1}), ended())
    terminal("export", "--into", str(into))
    (row,) = rows(into, "calls")
    of_run = {"tenant_id": "acme", "day": TODAY, "run_id": "run-1", "pipeline": "research"}
    del fields["cost_computed_usd"]
    expected = {
        **fields, **of_run, "step_id": step_id(2), "cost_usd": Decimal("0.5"), "payload_bytes": 7,
        "duration_ms": 1_000.0, "started_ns": T0 + 2 * SECOND, "ended_ns": T0 + 3 * SECOND,
        "attributes": None,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    assert set(row) - set(expected) == {"started_at", "ended_at"}
    (run,), (phase,) = rows(into, "runs"), rows(into, "phases")
    sums = ("input_tokens", "output_tokens", "cached_tokens")
    assert [run[name] for name in sums] == [phase[name] for name in sums] == [5, 4, 3]
    assert (phase["agents"], phase["models"]) == (["finder"], ["m-large"])


@pytest.mark.parametrize(
    ("arguments", "exported"),
    [
        (("run-2",), {"run-2"}),
        (("--pipeline", "translate"), {"run-2"}),
        (("--since", "2026-11-29T23:53:21Z"), {"run-2", "without-calls"}),
        (("--until", "2026-11-29T23:53:21Z"), {"run-1"}),
    ],
)
def test_what_is_exported_can_be_narrowed_down(
    terminal: Terminal, into: Path, arguments: tuple[str, ...], exported: set[str]
) -> None:
    recorded(terminal)
    terminal("export", *arguments, "--into", str(into), "--tenant", "acme")
    assert files(into) == {name for run_id in exported for name in in_each_table(run_id)}


def test_jsonl_has_a_row_a_line_with_money_and_times_in_full(
    terminal: Terminal, into: Path
) -> None:
    recorded(terminal)
    terminal("export", "run-2", "--into", str(into), "--format", "jsonl", "--tenant", "acme")
    assert files(into) == in_each_table("run-2", suffix=".jsonl.gz")
    path = into / f"calls/tenant_id=acme/day={TODAY}/run-2.jsonl.gz"
    (line,) = gzip.decompress(path.read_bytes()).splitlines()
    call = json.loads(line)
    assert list(call) == [column.name for column in lake.CALLS.columns]
    assert (call["cost_usd"], call["input_tokens"], call["error"]) == (COST, 7, "no\n\0")
    assert call["started_at"] == "2026-11-29T23:53:21.000000000Z"
    assert call["agent"] is None


# -- again -----------------------------------------------------------------------------------------


def test_runs_that_are_there_and_have_not_changed_are_skipped(
    terminal: Terminal, into: Path
) -> None:
    recorded(terminal)
    command = ("export", "--into", str(into), "--tenant", "acme")
    terminal(*command)
    terminal.memory.calls.made.clear()
    answer = terminal.json(*command)
    assert (answer["exported"], answer["unchanged"], answer["open"]) == (0, 3, 1)
    assert terminal.memory.calls.made.count("dynamodb.query") == 1  # of the index: no call is read
    assert "3 there already" in terminal(*command)
    other = terminal.json(*command, "--format", "jsonl")
    assert (other["exported"], other["unchanged"]) == (3, 0)


@pytest.mark.parametrize(
    "later",
    [
        [step(9, cost_usd="1")],
        [ended(T0 + 10, "failed")],
        [started(T0 - 1, "earlier")],
    ],
    ids=["a late step", "another end", "another start"],
)
def test_a_run_that_changed_is_written_anew(
    terminal: Terminal, into: Path, later: list[Any]
) -> None:
    recorded(terminal)
    command = ("export", "--into", str(into), "--tenant", "acme")
    terminal(*command)
    terminal.record("run-1", *later)
    answer = terminal.json(*command)
    assert (answer["exported"], answer["unchanged"]) == (1, 2)
    one = next(row for row in rows(into, "runs") if row["run_id"] == "run-1")
    summary = terminal.memory.item(RUN, keys.SUMMARY)
    assert summary is not None
    assert (
        one["agents_total"]
        == summary["agents_total"]
        == len([row for row in rows(into, "calls") if row["run_id"] == "run-1"])
    )
    run = terminal.memory.item(RUN, keys.RUN)
    assert run is not None
    assert (one["status"], one["pipeline"]) == (run["status"], run["pipeline"])


def test_a_run_that_began_on_an_earlier_day_moves_there(terminal: Terminal, into: Path) -> None:
    recorded(terminal)
    terminal("export", "run-1", "--into", str(into), "--tenant", "acme")
    terminal.record("run-1", started(T0 - DAY))
    terminal("export", "run-1", "--into", str(into), "--tenant", "acme")
    assert files(into) == in_each_table("run-1", "2026-11-28")


def test_a_run_moves_also_when_it_was_not_at_rest_at_first(terminal: Terminal, into: Path) -> None:
    terminal.record("run-1", started(), step(1), ended(), counted=False)
    terminal("export", "--into", str(into))
    terminal.record("run-1", started(T0 - DAY))
    terminal("export", "--into", str(into))
    assert files(into) == in_each_table("run-1", "2026-11-28")


def test_a_file_that_is_missing_is_written_again(terminal: Terminal, into: Path) -> None:
    recorded(terminal)
    command = ("export", "run-1", "--into", str(into), "--tenant", "acme")
    terminal(*command)
    for name in sorted(files(into)):
        (into / name).unlink()
        assert terminal.json(*command)["exported"] == 1
        assert files(into) == in_each_table("run-1")


def test_a_run_whose_summary_lags_is_written_and_looked_at_again(
    terminal: Terminal, into: Path
) -> None:
    terminal.record("run-1", started(), step(1), ended())
    terminal.record("run-1", step(2), counted=False)
    command = ("export", "--into", str(into))
    assert terminal.json(*command)["calls"] == 2
    assert terminal.json(*command)["exported"] == 1
    terminal.memory.drain()
    assert terminal.json(*command)["exported"] == 1
    assert terminal.json(*command)["unchanged"] == 1


def test_an_export_that_is_broken_off_leaves_whole_files_and_goes_on(
    terminal: Terminal, into: Path
) -> None:
    """At every single request to the table, one after the other."""
    recorded(terminal)
    command = ("export", "--into", str(into), "--tenant", "acme")
    left = 0

    def interrupt(call: str, when: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt

    for left_at_first in range(1, 100):
        left = left_at_first
        terminal.memory.calls.hook = interrupt
        try:
            terminal(*command)
            break
        except KeyboardInterrupt:
            assert not list(into.rglob("*unfinished*"))
            for name in files(into):
                assert duckdb.read_parquet(str(into / name)).fetchall() is not None
    assert left_at_first > 5
    terminal.memory.calls.hook = lambda *_: None
    assert {row["run_id"] for row in rows(into, "runs")} == {"run-1", "run-2", "without-calls"}


def test_what_a_killed_export_left_does_no_harm(terminal: Terminal, into: Path) -> None:
    recorded(terminal)
    command = ("export", "--into", str(into), "--tenant", "acme")
    terminal(*command)
    unfinished = into / ".unfinished"
    unfinished.mkdir()
    (unfinished / "calls").write_bytes(b"half")
    manifest = into / "export-manifest.jsonl"
    whole = manifest.read_bytes()
    manifest.write_bytes(whole[:-20])
    assert terminal.json(*command)["exported"] == 1
    assert terminal.json(*command)["unchanged"] == 3
    assert not unfinished.exists()


@pytest.mark.parametrize(
    "line",
    [
        b"\0" * 200,
        b'{"tenant_id":"acme","run_',
        b"\xff\xfe",
        b"[]",
        b"",
        b'{"tenant_id":"acme","run_id":"run-1","format":"arrow","day":"2026-11-29","state":"x"}',
        b'{"tenant_id":"acme","run_id":"run-1","format":"parquet","day":"x/../..","state":"x"}',
    ],
)
def test_a_line_that_cannot_be_read_costs_that_run_to_be_written_again(
    terminal: Terminal, into: Path, line: bytes
) -> None:
    """As a power cut may leave it, or a version to come."""
    recorded(terminal)
    command = ("export", "--into", str(into), "--tenant", "acme")
    terminal(*command)
    manifest = into / "export-manifest.jsonl"
    lines = manifest.read_bytes().splitlines()
    (settled,) = [n for n, each in enumerate(lines) if b'"run-1"' in each and b"null" not in each]
    lines[settled] = line
    manifest.write_bytes(b"\n".join(lines) + b"\n")
    (into / "calls/tenant_id=acme/day=x").mkdir()
    (into / "calls/run-1.parquet").touch()
    again = terminal.json(*command)
    assert (again["exported"], again["unchanged"], again["failed"]) == (1, 2, [])
    assert terminal.json(*command)["unchanged"] == 3
    assert (into / "calls/run-1.parquet").exists(), "it is nobody's"


def test_a_line_says_what_is_on_the_disk_already(
    terminal: Terminal, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = into / "export-manifest.jsonl"
    synced: set[Path] = set()

    def sync(path: Path) -> None:
        assert b'"state":"' not in manifest.read_bytes()
        assert path.exists()
        synced.add(path)

    monkeypatch.setattr(export_manifest, "_sync", sync)
    recorded(terminal)
    terminal("export", "--into", str(into), "--tenant", "acme")
    written = {into / name for name in files(into)}
    assert len(written) == 9
    assert synced == written | {path.parent for path in written}
    assert manifest.read_bytes().count(b'"state":"') == 3


def test_runs_settle_together_while_others_are_written(
    terminal: Terminal, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_manifest, "_RUNS_AT_ONCE", 2)
    entries = [Entry("acme", f"run-{n}", "parquet", TODAY, "x") for n in range(3)]

    def settled() -> int:
        return (into / "export-manifest.jsonl").read_bytes().count(b'"state":"x"')

    with Manifest.opened(into) as manifest:
        found = []
        for entry in entries:
            manifest.settle(entry, [into / "gone"])
            found.append(settled())
        assert found == [0, 2, 2]
        assert manifest.entry(RUN._replace(run_id="run-2"), "parquet") == entries[2]
        assert settled() == 3


# -- what was deleted ------------------------------------------------------------------------------


def test_files_of_deleted_runs_are_removed_when_asked_for(terminal: Terminal, into: Path) -> None:
    recorded(terminal)
    command = ("export", "--into", str(into), "--tenant")
    terminal(*command, "globex")
    terminal(*command, "acme")
    terminal(*command, "acme", "--format", "jsonl")
    before = files(into)
    terminal("delete", "run", "run-1", "--tenant", "acme")
    terminal.memory.erase_all()
    assert terminal.json(*command, "acme")["pruned"] == 0
    assert files(into) == before
    shown = terminal(*command, "acme", "--prune")
    assert "1 deleted run removed." in shown
    gone = in_each_table("run-1") | in_each_table("run-1", suffix=".jsonl.gz")
    assert files(into) == before - gone
    assert terminal.json(*command, "acme", "--prune")["pruned"] == 0


@pytest.mark.parametrize("lost", ["expired", "another stage", "throttled"])
def test_nothing_is_removed_for_want_of_an_answer(
    terminal: Terminal, into: Path, lost: str
) -> None:
    recorded(terminal)
    command = ("export", "--into", str(into), "--tenant", "acme", "--prune")
    terminal(*command)
    before = files(into)
    table = terminal.memory.dynamodb.items
    if lost == "expired":
        for key in [key for key in table if "run-1" in key[0]]:
            del table[key]
    if lost == "another stage":
        table.clear()
    if lost == "throttled":
        terminal("delete", "run", "run-1", "--tenant", "acme")

        def throttle(call: str, when: str) -> None:
            if call == "dynamodb.batch_get_item":
                raise client_error(call, "ThrottlingException")

        terminal.memory.calls.hook = throttle
        with pytest.raises(LocalStageError, match="ThrottlingException"):
            terminal(*command)
    else:
        assert terminal.json(*command)["pruned"] == 0
    assert files(into) == before


# -- file systems to which A and a are one name ----------------------------------------------------


def test_whether_a_file_system_folds_case_is_tried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Folding:
        """Of each file there are both names."""

        def __init__(self, **given: Any) -> None:
            self.name = str(tmp_path / ".case-a")
            (tmp_path / ".CASE-A").touch()

        def __enter__(self) -> "Folding":
            return self

        def __exit__(self, *_: object) -> None:
            (tmp_path / ".CASE-A").unlink()

    (tmp_path / "there").touch()
    assert file_names.folds_case(tmp_path) is (tmp_path / "THERE").exists()
    monkeypatch.setattr("tempfile.NamedTemporaryFile", Folding)
    assert file_names.folds_case(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_no_run_is_written_over_another_that_differs_in_case_alone(
    terminal: Terminal, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(terminal)
    terminal.record("RUN-1", started(T0 + SECOND), step(1), ended())
    terminal.record("other", started(), step(1), ended(), tenant="ACME")
    command = ("export", "--into", str(into), "--tenant")
    monkeypatch.setattr(file_names, "folds_case", lambda folder: True)
    for exported in (3, 0):
        answer = terminal.json(*command, "acme", code=1)
        assert answer["exported"] == exported
        (failed,) = answer["failed"]
        assert failed["run_id"] == "RUN-1"
        assert failed["reason"].startswith("SameFile: for this file system it is acme/run-1")
        answer = terminal.json(*command, "ACME", code=1)
        assert [each["run_id"] for each in answer["failed"]] == ["other"]
    ids = ("run-1", "run-2", "without-calls")
    assert files(into) == {name for run_id in ids for name in in_each_table(run_id)}
    monkeypatch.setattr(file_names, "folds_case", lambda folder: False)
    assert terminal.json(*command, "acme")["exported"] == 1
    assert terminal.json(*command, "ACME")["exported"] == 1


# -- what fails ------------------------------------------------------------------------------------


def test_a_run_that_fails_is_named_and_the_others_go_on(terminal: Terminal, into: Path) -> None:
    recorded(terminal)
    item = terminal.memory.dynamodb.items[keys.step_item(RUN, 1, step_id(2))]
    kind = item.pop("kind")
    shown = terminal("export", "--into", str(into), "--tenant", "acme", code=1)
    assert "✗ run-1  KeyError: 'kind'" in shown
    assert "2 runs with 1 call written" in shown
    assert files(into) == in_each_table("run-2") | in_each_table("without-calls")
    item["kind"] = kind
    answer = terminal.json("export", "--into", str(into), "--tenant", "acme")
    assert (answer["exported"], answer["unchanged"], answer["failed"]) == (1, 2, [])


def test_a_run_of_which_calls_are_gone_is_not_exported_as_if_it_were_whole(
    terminal: Terminal, into: Path
) -> None:
    """As TTL leaves it, one item after the other, or an erasure that has begun meanwhile."""
    recorded(terminal)
    del terminal.memory.dynamodb.items[keys.step_item(RUN, 1, step_id(2))]
    (failed,) = terminal.json("export", "run-1", "--into", str(into), "--tenant", "acme", code=1)[
        "failed"
    ]
    assert failed == {"run_id": "run-1", "reason": "Incomplete: 3 of 4 calls are there"}
    assert files(into) == set()


def rebuild(terminal: Terminal, calls: int, at: int = T0) -> None:
    """As one leaves the run of which events are too old to be sent again."""
    items = terminal.memory.dynamodb.items
    for key in [key for key in items if "acme" in key[0] and "run-1" in key[0]]:
        del items[key]
    steps = [step(n, cost_usd="1") for n in range(1, calls + 1)]
    terminal.record("run-1", started(at), *steps, ended(T0 + calls))


def calls_of(into: Path) -> int:
    return len([row for row in rows(into, "calls") if row["run_id"] == "run-1"])


@pytest.mark.parametrize("at", [T0, T0 - DAY], ids=["on that day", "on another day"])
def test_files_with_more_calls_than_the_table_has_stay(
    terminal: Terminal, into: Path, at: int
) -> None:
    recorded(terminal)
    command = ("export", "--into", str(into), "--tenant", "acme")
    terminal(*command)
    before = {name: (into / name).read_bytes() for name in files(into)}
    rebuild(terminal, 3, at)
    for _ in range(2):
        answer = terminal.json(*command, code=1)
        assert (answer["exported"], answer["unchanged"]) == (0, 2)
        assert answer["failed"] == [
            {"run_id": "run-1", "reason": "Incomplete: 3 of 4 calls are there"}
        ]
        assert {name: (into / name).read_bytes() for name in files(into)} == before
    assert terminal.json(*command, "--format", "jsonl")["failed"] == []
    terminal.record("run-1", step(11), step(12))
    answer = terminal.json(*command)
    assert (answer["exported"], answer["calls"], answer["failed"]) == (1, 5, [])
    assert calls_of(into) == 5
    rebuild(terminal, 4)
    answer = terminal.json(*command, code=1)
    assert answer["failed"][0]["reason"] == "Incomplete: 4 of 5 calls are there"


def test_fewer_calls_are_written_where_no_files_are(terminal: Terminal, into: Path) -> None:
    recorded(terminal)
    command = ("export", "run-1", "--into", str(into), "--tenant", "acme")
    terminal(*command)
    rebuild(terminal, 3)
    assert terminal.json(*command, code=1)["exported"] == 0
    names = sorted(files(into))
    for name in names[:-1]:
        (into / name).unlink()
    assert terminal.json(*command, code=1)["exported"] == 0
    (into / names[-1]).unlink()
    assert terminal.json(*command)["calls"] == calls_of(into) == 3


def test_a_manifest_of_an_older_version_does_not_say_how_many_calls_there_were(
    terminal: Terminal, into: Path
) -> None:
    recorded(terminal)
    command = ("export", "--into", str(into), "--tenant", "acme")
    terminal(*command)
    manifest = into / "export-manifest.jsonl"
    lines = [json.loads(line) for line in manifest.read_bytes().splitlines()]
    assert {line["calls"] for line in lines if line["run_id"] == "run-1"} == {4}
    older = [{name: line[name] for name in line if name != "calls"} for line in lines]
    manifest.write_text("".join(json.dumps(line) + "\n" for line in older))
    assert terminal.json(*command)["unchanged"] == 3
    rebuild(terminal, 3)
    assert terminal.json(*command)["calls"] == calls_of(into) == 3
    rebuild(terminal, 2)
    assert terminal.json(*command, code=1)["exported"] == 0


def test_what_was_deleted_is_pruned_whatever_calls_it_had(terminal: Terminal, into: Path) -> None:
    recorded(terminal)
    command = ("export", "--into", str(into), "--tenant", "acme", "--prune")
    terminal(*command)
    terminal.record("run-1", started(T0 - DAY))
    terminal(*command)
    assert in_each_table("run-1", "2026-11-28") < files(into)
    rebuild(terminal, 3)
    assert terminal.json(*command, code=1)["pruned"] == 0
    terminal("delete", "run", "run-1", "--tenant", "acme")
    terminal.memory.erase_all()
    assert terminal.json(*command)["pruned"] == 1
    assert files(into) == in_each_table("run-2") | in_each_table("without-calls")


def test_calls_that_vanish_between_two_looks_are_missed(terminal: Terminal, into: Path) -> None:
    recorded(terminal)
    looks: list[str] = []

    def vanish(call: str, when: str) -> None:
        if (call, when) == ("dynamodb.query", "before"):
            looks.append(call)
            if len(looks) == 2:  # the steps, and now their items
                del terminal.memory.dynamodb.items[keys.step_item(RUN, 1, step_id(2))]

    terminal.memory.calls.hook = vanish
    answer = terminal.json("export", "run-1", "--into", str(into), "--tenant", "acme", code=1)
    assert answer["failed"][0]["reason"] == "Incomplete: 3 of 4 calls are there"


def test_steps_that_come_between_two_looks_are_left_to_the_next_time(
    terminal: Terminal, into: Path
) -> None:
    recorded(terminal)
    looks: list[str] = []

    def come(call: str, when: str) -> None:
        if (call, when) == ("dynamodb.query", "after"):
            looks.append(call)
            if len(looks) == 1:
                terminal.record("run-1", step(3_000), counted=False)

    terminal.memory.calls.hook = come
    command = ("export", "run-1", "--into", str(into), "--tenant", "acme")
    assert terminal.json(*command)["calls"] == 4
    assert len(rows(into, "calls")) == rows(into, "runs")[0]["agents_total"] == 4
    terminal.memory.drain()
    assert terminal.json(*command)["calls"] == 5


def test_a_table_that_does_not_answer_for_a_run_is_a_failure_of_that_run(
    terminal: Terminal, into: Path
) -> None:
    recorded(terminal)
    queries: list[str] = []

    def throttle(call: str, when: str) -> None:
        if (call, when) == ("dynamodb.query", "before"):
            queries.append(call)
            if len(queries) == 2:  # behind the one of the index
                raise client_error(call, "ThrottlingException")

    terminal.memory.calls.hook = throttle
    answer = terminal.json("export", "--into", str(into), "--tenant", "acme", code=1)
    assert answer["exported"] == 2
    ((name, reason),) = [each.values() for each in answer["failed"]]
    assert name == "run-1"
    assert reason.startswith("Unavailable: ")


def test_an_open_run_by_name_is_left_out_and_one_that_is_not_there_told(
    terminal: Terminal, into: Path
) -> None:
    recorded(terminal)
    shown = terminal("export", "open", "--into", str(into), "--tenant", "acme")
    assert "1 left out: they have not ended" in shown
    with pytest.raises(LocalStageError, match="no such run"):
        terminal("export", "nowhere", "--into", str(into), "--tenant", "acme")
    with pytest.raises(LocalStageError, match="exclude each other"):
        terminal("export", "run-1", "--since", "2h", "--into", str(into), "--tenant", "acme")


def test_two_exports_do_not_write_into_one_folder_at_once(terminal: Terminal, into: Path) -> None:
    recorded(terminal)
    with (
        Manifest.opened(into),
        pytest.raises(LocalStageError, match="Another export is writing"),
    ):
        terminal("export", "--into", str(into), "--tenant", "acme")


def test_a_folder_that_cannot_be_written_is_told(terminal: Terminal, tmp_path: Path) -> None:
    recorded(terminal)
    (tmp_path / "file").write_text("")
    with pytest.raises(LocalStageError, match="cannot be written"):
        terminal("export", "--into", str(tmp_path / "file"), "--tenant", "acme")
