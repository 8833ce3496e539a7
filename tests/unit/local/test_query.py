"""`runtally query`: the same rows from a folder and from S3, in three forms; it only reads."""

import csv
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from functions.core import lake
from local import file_names, querying
from local.commands import LocalStageError
from local.locks import lock_now
from local.paths import ROOT
from local.questions import QUESTIONS
from tests.build import SECOND, T0, ended, started, step
from tests.fakes.calls import client_error
from tests.fakes.cloud import MemoryCloudFormation
from tests.unit.local.terminal import Terminal, strictly

DAY = 86_400 * SECOND
COST = "123456789012.000000000000000001"
IDS = "SELECT tenant_id, run_id FROM runs ORDER BY ALL"


@pytest.fixture
def folder(terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three runs of two tenants on two days; the path is one that SQL and globs might misread."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "a=b [lake] of 'mine'"
    steps = [step(n, phase="plan", model="m-large", cost_usd=f"0.{n}") for n in range(1, 5)]
    terminal.record("run-1", started(), *steps, ended())
    failed = step(1, status="failed", error="timeout after 17 s", cost_usd=COST, payload="x")
    terminal.record("run-2", started(T0 - DAY, "translate"), failed, ended(status="failed"))
    other = step(1, status="failed", error="timeout after 3 s", name="[bold]a")
    terminal.record("007", started(), other, ended(), tenant="globex")
    for tenant in ("acme", "globex"):
        terminal("export", "--into", str(folder), "--tenant", tenant)
    return folder


def ask(terminal: Terminal, sql: str, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = strictly(terminal("query", sql, *arguments, "--json"))
    return found


def ids(found: list[dict[str, Any]]) -> list[str]:
    return [row["run_id"] for row in found]


# -- a folder --------------------------------------------------------------------------------------


def test_a_table_csv_and_json_show_the_same_with_every_digit(
    terminal: Terminal, folder: Path
) -> None:
    sql = (
        "SELECT run_id, sum(cost_usd) AS cost_usd, min(started_at) AS first, list(phase) AS phases"
        " FROM calls WHERE tenant_id = 'acme' GROUP BY ALL ORDER BY run_id"
    )
    at, first = ("--in", str(folder)), "2026-11-29T23:53:21Z"
    expected = [
        {"run_id": "run-1", "cost_usd": "1", "first": first, "phases": ["plan"] * 4},
        {"run_id": "run-2", "cost_usd": COST, "first": first, "phases": ["(no phase)"]},
    ]
    assert ask(terminal, sql, *at) == expected
    read = list(csv.DictReader(io.StringIO(terminal("query", sql, *at, "--csv"))))
    assert [(row["run_id"], row["cost_usd"]) for row in read] == [("run-1", "1"), ("run-2", COST)]
    heading, *lines = terminal("query", sql, *at).splitlines()
    assert heading.split() == ["run_id", "cost_usd", "first", "phases"]
    assert COST in lines[1]


def test_ids_that_look_like_numbers_and_days_stay_text(terminal: Terminal, folder: Path) -> None:
    sql = "SELECT typeof(tenant_id) AS t, typeof(day) AS d, run_id FROM runs WHERE run_id = '007'"
    assert ask(terminal, sql, "--in", str(folder)) == [
        {"t": "VARCHAR", "d": "VARCHAR", "run_id": "007"}
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), ["run-1", "run-2", "007"]),
        (("--tenant", "globex"), ["007"]),
        (("--since", "2026-11-29T23:59:59Z"), ["run-1", "007"]),
        (("--until", "2026-11-29T00:00:00Z"), ["run-2"]),
        (("--until", "2026-11-29T00:00:01Z"), ["run-1", "run-2", "007"]),
        (("--tenant", "acme", "--until", "2026-11-29T00:00:00Z"), ["run-2"]),
    ],
)
def test_rows_can_be_narrowed_to_a_tenant_and_days(
    terminal: Terminal, folder: Path, arguments: tuple[str, ...], expected: list[str]
) -> None:
    assert ids(ask(terminal, IDS, "--in", str(folder), *arguments)) == expected


def test_a_folder_may_be_named_like_a_partition(
    terminal: Terminal, folder: Path, tmp_path: Path
) -> None:
    place = tmp_path / "day=2020-01-01" / "run_id=zz" / "tenant_id=zz"
    terminal("export", "--into", str(place), "--tenant", "acme")
    sql = "SELECT tenant_id, day, run_id FROM runs"
    there = ask(terminal, f"{sql} ORDER BY ALL", "--in", str(place))
    expected = f"{sql} WHERE tenant_id = 'acme' ORDER BY ALL"
    assert there == ask(terminal, expected, "--in", str(folder))
    assert ids(there) == ["run-2", "run-1"]


def test_an_empty_lake_has_tables_with_all_columns(
    terminal: Terminal, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    for place in (folder, tmp_path / "empty"):
        for table in lake.TABLES:
            described = ask(terminal, f"DESCRIBE {table.name}", "--in", str(place))
            columns = [(row["column_name"], row["column_type"]) for row in described]
            assert columns == [(column.name, column.kind) for column in table.columns]
    assert "No rows." in terminal("query", IDS, "--in", str(tmp_path / "empty"))


def test_files_of_an_older_version_lack_columns_and_are_read_all_the_same(
    terminal: Terminal, folder: Path, tmp_path: Path
) -> None:
    older = folder / "runs" / "tenant_id=acme" / "day=2020-01-01" / "older.parquet"
    older.parent.mkdir()
    with duckdb.connect() as database:
        database.execute(f"COPY (SELECT 'older' AS run_id, 1 AS surplus) TO '{tmp_path}/o.parquet'")
    (tmp_path / "o.parquet").rename(older)
    sql = "SELECT tenant_id, day, run_id, status FROM runs WHERE tenant_id = 'acme' ORDER BY day"
    first, second, _ = ask(terminal, sql, "--in", str(folder))
    assert first == {
        "tenant_id": "acme", "day": "2020-01-01", "run_id": "older", "status": None,
    }  # fmt: skip
    assert second["status"] == "failed"


@pytest.mark.parametrize("name", QUESTIONS)
def test_each_ready_question_has_an_answer(terminal: Terminal, folder: Path, name: str) -> None:
    rows = strictly(terminal("query", "--named", name, "--in", str(folder), "--json"))
    assert rows
    assert name in terminal("query", "--list")
    assert QUESTIONS[name].sql in terminal("query", "--list")


def test_the_ready_questions_answer_what_they_say(terminal: Terminal, folder: Path) -> None:
    def answer(name: str) -> list[dict[str, Any]]:
        found = terminal("query", "--named", name, "--in", str(folder), "--json")
        rows: list[dict[str, Any]] = strictly(found)
        return rows

    unknown, known = answer("cost-by-model-and-week")
    assert (unknown["model"], unknown["cost_usd"], unknown["cost_unknown"]) == (
        "(no model)",
        COST,
        1,
    )
    assert (known["week"], known["calls"], known["cost_usd"]) == ("2026-11-23", 4, "1")
    (cluster,) = answer("failure-clusters")
    assert (cluster["error"], cluster["calls"], cluster["runs"]) == ("timeout after # s", 2, 2)
    dearest = answer("dearest-prompts")[0]
    assert (dearest["cost_usd"], dearest["run_id"]) == (COST, "run-2")
    assert terminal("payload", dearest["run_id"], dearest["step_id"], "--tenant", "acme") == '"x"'
    assert {(row["phase"], row["p95_ms"]) for row in answer("p95-by-phase")} >= {("plan", 1_000.0)}


def test_p95_is_the_nearest_rank_as_in_the_table_of_phases(
    terminal: Terminal, folder: Path
) -> None:
    steps = [step(n, phase="wait", ended_at=T0 + (n + n * n) * SECOND) for n in range(1, 38)]
    terminal.record("run-3", started(pipeline="waits"), *steps, ended())
    terminal("export", "run-3", "--into", str(folder), "--tenant", "acme")
    at = ("--in", str(folder))
    (phase,) = ask(terminal, "SELECT * FROM phases WHERE run_id = 'run-3'", *at)
    rows = strictly(terminal("query", "--named", "p95-by-phase", *at, "--json"))
    (asked,) = [row for row in rows if row["pipeline"] == "waits"]
    assert (asked["p50_ms"], asked["p95_ms"]) == (phase["p50_ms"], phase["p95_ms"])
    assert asked["p50_ms"] != asked["p95_ms"]


def test_many_rows_are_cut_in_a_table_and_nowhere_else(terminal: Terminal, folder: Path) -> None:
    sql = "SELECT unnest(range(1500)) AS n"
    shown = terminal("query", sql, "--in", str(folder))
    assert "The first 1,000 rows" in shown
    assert len(ask(terminal, sql, "--in", str(folder))) == 1_500
    assert len(terminal("query", sql, "--in", str(folder), "--csv").splitlines()) == 1_501


def test_values_of_every_kind_are_json_that_others_read(terminal: Terminal, folder: Path) -> None:
    sql = (
        "SELECT 170141183460469231731687303715884105727 AS i, 'nan'::DOUBLE AS n, 1.50 AS d,"
        " DATE '2026-11-30' AS day, TIMESTAMPTZ '2026-11-30 12:00:00+02' AS tz, true AS b,"
        " {'a': [1.5, NULL]} AS s, '你\"\n' AS t, 'ab'::BLOB AS x, INTERVAL 1 DAY AS iv"
    )
    assert ask(terminal, sql, "--in", str(folder)) == [
        {
            "i": 2**127 - 1, "n": None, "d": "1.5", "day": "2026-11-30",
            "tz": "2026-11-30T10:00:00Z", "b": True, "s": {"a": ["1.5", None]}, "t": '你"\n',
            "x": "6162", "iv": "1 day, 0:00:00",
        }
    ]  # fmt: skip


def test_text_of_others_is_no_markup(terminal: Terminal, folder: Path) -> None:
    assert "[bold]a" in terminal("query", "SELECT name FROM calls", "--in", str(folder))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'a;--' AS a;",
        "SELECT 'a;--' AS a\n;\n",
        "SELECT 'a;--' AS a; -- a note",
        "SELECT 'a;--' AS a -- 你;\n;",
        "/* 你; */ SELECT 'a;--' AS a /* one */ ; /* two; */ ;; -- three",
        ";SELECT $$a;--$$ AS a;",
        "SELECT '你' AS b, 'a;--' AS a; -- 你",
        "VALUES ('a;--');",
        "FROM (SELECT 'a;--' AS a);",
        "WITH a AS (SELECT 'a;--') FROM a;",
    ],
)
def test_a_select_may_end_as_one_writes_it(terminal: Terminal, folder: Path, sql: str) -> None:
    (row,) = ask(terminal, sql, "--in", str(folder))
    assert "a;--" in row.values()


@pytest.mark.parametrize(
    ("sql", "first"),
    [
        ("DESCRIBE calls;", "tenant_id"),
        ("SUMMARIZE calls; --", "tenant_id"),
        ("SHOW TABLES;", "calls"),
        ("TABLE runs;", "acme"),
        ("PIVOT runs ON status IN ('failed', 'succeeded') USING count(*) GROUP BY pipeline;", None),
    ],
)
def test_what_only_reads_is_taken_as_a_select(
    terminal: Terminal, folder: Path, sql: str, first: str | None
) -> None:
    rows = ask(terminal, sql, "--in", str(folder))
    assert first is None or next(iter(rows[0].values())) == first


def test_a_pivot_that_would_make_a_type_says_how_it_is_taken(
    terminal: Terminal, folder: Path
) -> None:
    with pytest.raises(LocalStageError, match="Only a single SELECT") as refused:
        terminal("query", "PIVOT runs ON status USING count(*)", "--in", str(folder))
    assert "PIVOT runs ON status IN ('failed', 'succeeded')" in refused.value.advice


# -- asking changes nothing ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "COPY runs TO '{folder}/out.csv'",
        "COPY runs TO '{elsewhere}/out.csv'",
        "EXPLAIN ANALYZE COPY runs TO '{folder}/out.csv'",
        "SELECT 1; COPY runs TO '{folder}/out.csv'",
        "WITH x AS (COPY runs TO '{folder}/out.csv') SELECT 1",
        "WITH x AS (COPY runs TO '{folder}/out.csv') SELECT * FROM x -- ",
        "WITH x AS (COPY runs TO '{folder}/out.csv') SELECT * FROM x; -- ",
        "SELECT 1) x; COPY runs TO '{folder}/out.csv'; SELECT * FROM (SELECT 1",
        "PIVOT (WITH x AS (COPY runs TO '{folder}/out.csv') FROM runs) ON status USING count(*)",
        "EXPORT DATABASE '{folder}/out'",
        "ATTACH '{folder}/out.db'",
        "ATTACH '{elsewhere}/out.db'",
        "CREATE TABLE mine AS SELECT 1",
        "DROP VIEW runs",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "PRAGMA enable_profiling",
        "SELECT * FROM query('COPY runs TO ''{folder}/out.csv''')",
        "SELECT * FROM read_text('{elsewhere}/secret')",
        "SELECT * FROM read_csv('{elsewhere}/secret')",
        "SELECT * FROM '{elsewhere}/secret.parquet'",
        "SELECT * FROM glob('{elsewhere}/*')",
        "SELECT * FROM read_text('{folder}/../secret')",
        "SELECT * FROM read_parquet('https://example.com/x.parquet')",
        "SELECT * FROM database",
        "",
        "/* nothing */",
    ],
)
def test_sql_reads_the_lake_and_does_nothing_else(
    terminal: Terminal, folder: Path, tmp_path: Path, sql: str
) -> None:
    (tmp_path / "secret").write_text("secret")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    filled = sql.format(folder=str(folder).replace("'", "''"), elsewhere=tmp_path)
    with pytest.raises(LocalStageError):
        terminal("query", filled, "--in", str(folder))
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '{elsewhere}/out'",
        "ATTACH '{elsewhere}/out'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "SELECT * FROM here",
    ],
)
def test_duckdb_is_locked_whatever_kind_of_statement_gets_through(
    folder: Path, tmp_path: Path, sql: str
) -> None:
    here = [1]
    with duckdb.connect() as database:
        querying._lock(database, folder, str(tmp_path / "spill"))
        with pytest.raises(duckdb.Error):
            database.execute(sql.format(elsewhere=tmp_path))
    assert here
    assert not (tmp_path / "out").exists()


def test_an_error_of_sql_is_one_message_with_its_place(terminal: Terminal, folder: Path) -> None:
    with pytest.raises(LocalStageError, match=r"Binder Error: .*nope(.|\n)*LINE 1"):
        terminal("query", "SELECT nope FROM runs", "--in", str(folder))
    with pytest.raises(LocalStageError, match="Conversion Error"):
        terminal("query", "SELECT run_id::INTEGER FROM runs", "--in", str(folder))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Give SQL"),
        (("SELECT 1", "--named", "p95-by-phase"), "Give SQL"),
        (("--named", "nope"), "There is no question nope"),
        (("SELECT 1", "--in", "nowhere"), "There is no folder nowhere"),
        (("SELECT 1",), "There is no folder runtally-lake"),
        (("SELECT 1", "--in", ".", "--lake", "s3://b/lake/"), "exclude each other"),
        (("SELECT 1", "--in", ".", "--csv", "--json"), "exclude each other"),
        (("SELECT 1 AS a, 2 AS a", "--in", ".", "--json"), "Two columns have one name"),
        (("SELECT 1", "--lake", "https://b/lake/"), "no address of a lake"),
        (("SELECT 1", "--lake", "s3://b//lake/"), "no address of a lake"),
        (("SELECT 1", "--lake", "s3://b/../lake/"), "no address of a lake"),
        (("SELECT 1", "--lake", "s3://"), "no address of a lake"),
        (("SELECT 1", "--in", ".", "--tenant", "a*"), "`--tenant`: 'a\\*' is no tenant id"),
        (("SELECT 1", "--lake", "s3://b/lake/", "--tenant", "../a"), "is no tenant id"),
    ],
)
def test_what_cannot_be_asked_is_told(
    terminal: Terminal, folder: Path, arguments: tuple[str, ...], told: str
) -> None:
    with pytest.raises(LocalStageError, match=told):
        terminal("query", *arguments)


# -- Ctrl-C ----------------------------------------------------------------------------------------

APP = """
import signal
from local.main import app
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever made us may ignore it
app()
"""
INTERRUPTED_ONCE_AT_WORK = f"""
import os, signal, sys, threading

def line():
    return [f.f_lineno for f in sys._current_frames().values() if f.f_code.co_name == "_ask"]

def interrupt():
    lines = [None]  # the statement that has no end is the one it stays at
    while not lines[-1] or lines[-20:].count(lines[-1]) < 20:
        threading.Event().wait(0.01)
        lines.append(line())
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
{APP}
"""
ENDLESS = "FROM range(10_000_000_000) a, range(10_000_000_000) b"


@contextmanager
def command_line(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(  # noqa: S603 - our own command line
        [sys.executable, "-c", code, "query", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
        },
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT sum(a.range * b.range) {ENDLESS}",
        f"SELECT 1 {ENDLESS} WHERE hash(a.range + b.range) = 7",
    ],
    ids=["an aggregate", "rows that do not come"],
)
def test_ctrl_c_ends_a_question_that_has_no_answer_yet(folder: Path, sql: str) -> None:
    with command_line(INTERRUPTED_ONCE_AT_WORK, sql, "--in", str(folder)) as asked:
        assert asked.communicate() == ("", "")
    assert asked.returncode == 130


@pytest.mark.timeout(60)
def test_ctrl_c_ends_an_answer_of_which_no_more_rows_come(folder: Path) -> None:
    """DuckDB has them in vectors of 2,048; so many are more than it buffers for a start."""
    sql = "SELECT range FROM range(10_000_000_000_000) WHERE range < 204_800 OR hash(range) = 7"
    with command_line(APP, sql, "--csv", "--in", str(folder)) as asked:
        assert asked.stdout
        while asked.stdout.readline() != "203999\n":
            pass
        asked.send_signal(signal.SIGINT)
        assert asked.communicate()[1] == ""
    assert asked.returncode == 130


@pytest.mark.timeout(60)
def test_ctrl_c_ends_the_wait_for_another_question(folder: Path, tmp_path: Path) -> None:
    lock = tmp_path / "cache" / "runtally" / "lakes" / "b" / "lake" / ".lock"
    lock.parent.mkdir(parents=True)
    there = ("--lake", "s3://b/lake/", "--region", "eu-central-1")
    with lock.open("w") as held:
        assert lock_now(held, "exclusive")
        with command_line(APP, "SELECT 1", *there) as asked:
            assert asked.stderr
            told = asked.stderr.readline()
            asked.send_signal(signal.SIGINT)
            assert asked.communicate() == ("", "")
    assert told == "Waiting for another `runtally query` of this lake.\n"
    assert asked.returncode == 130


# -- a lake on S3 ----------------------------------------------------------------------------------

AT = ("--lake", "s3://b/lake")


def put(terminal: Terminal, folder: Path) -> None:
    """Make the bucket's lake what the folder is."""
    objects = terminal.memory.s3.objects
    for key in [key for key in objects if key.startswith("lake/")]:
        del objects[key]
    for path in folder.rglob("*.parquet"):
        objects[f"lake/{path.relative_to(folder)}"] = path.read_bytes()
    objects["lake/runs/readme.txt"] = b"of another kind"


def gets(terminal: Terminal) -> int:
    made = terminal.memory.calls.made
    count = made.count("s3.get_object")
    made.clear()
    return count


def test_a_lake_on_s3_answers_as_the_folder_and_brings_nothing_twice(
    terminal: Terminal, folder: Path
) -> None:
    put(terminal, folder)
    terminal.memory.s3.most_versions = 2  # a page
    gets(terminal)
    assert ids(ask(terminal, IDS, *AT)) == ["run-1", "run-2", "007"]
    assert gets(terminal) == 9
    assert ids(ask(terminal, IDS, *AT)) == ["run-1", "run-2", "007"]
    assert gets(terminal) == 0


def test_what_changed_is_brought_anew_and_what_was_deleted_is_gone(
    terminal: Terminal, folder: Path
) -> None:
    put(terminal, folder)
    ask(terminal, IDS, *AT)
    terminal.record("run-1", step(9, cost_usd="7"))
    terminal("export", "run-1", "--into", str(folder), "--tenant", "acme")
    for path in folder.rglob("run-2.parquet"):
        path.unlink()
    put(terminal, folder)
    gets(terminal)
    sql = "SELECT run_id, agents_total FROM runs ORDER BY run_id"
    expected = [{"run_id": "007", "agents_total": 1}, {"run_id": "run-1", "agents_total": 5}]
    assert ask(terminal, sql, *AT) == expected
    assert gets(terminal) == 3


def test_only_the_partitions_that_are_asked_for_are_brought(
    terminal: Terminal, folder: Path, tmp_path: Path
) -> None:
    put(terminal, folder)
    gets(terminal)
    until = ("--until", "2026-11-29T00:00:00Z")
    assert ids(ask(terminal, IDS, *AT, "--tenant", "acme", *until)) == ["run-2"]
    assert gets(terminal) == 3
    assert ids(ask(terminal, IDS, *AT, "--tenant", "globex")) == ["007"]
    assert gets(terminal) == 3
    assert ids(ask(terminal, IDS, *AT)) == ["run-1", "run-2", "007"]
    assert gets(terminal) == 3


def test_an_object_that_is_replaced_or_deleted_meanwhile_is_listed_again(
    terminal: Terminal, folder: Path, tmp_path: Path
) -> None:
    put(terminal, folder)
    (one,) = (
        key for key in terminal.memory.s3.objects if key.startswith("lake/runs") and "007" in key
    )
    (two,) = (
        key for key in terminal.memory.s3.objects if key.startswith("lake/runs") and "run-2" in key
    )
    newer = tmp_path / "newer.parquet"
    duckdb.read_parquet(str(folder / one.removeprefix("lake/"))).write_parquet(
        str(newer), compression="gzip"
    )

    def meanwhile(call: str, when: str) -> None:
        if call == "s3.get_object":
            terminal.memory.calls.hook = lambda *_: None
            terminal.memory.s3.objects[one] = newer.read_bytes()
            del terminal.memory.s3.objects[two]

    terminal.memory.calls.hook = meanwhile
    assert ids(ask(terminal, IDS, *AT)) == ["run-1", "007"]


def test_no_name_of_an_object_leads_out_of_the_cache(
    terminal: Terminal, folder: Path, tmp_path: Path
) -> None:
    put(terminal, folder)
    below = "lake/runs/tenant_id=a/day=2026-11-29/"
    for name in ("../../../../../evil", "x/../../../../../../evil", "a/b"):
        terminal.memory.s3.objects[f"{below}{name}.parquet"] = b"evil"
    terminal.memory.s3.objects["lake/runs/tenant_id=a/day=../../../evil/x.parquet"] = b"evil"
    assert len(ids(ask(terminal, IDS, *AT))) == 3
    assert not list(tmp_path.rglob("*evil*"))


def test_the_lake_of_a_stage_is_found_by_its_output(terminal: Terminal, folder: Path) -> None:
    put(terminal, folder)
    stacks = {"runtally-prod-lake": {"LakeUrl": "s3://b/lake/"}, "runtally-dev-data": {}}
    terminal.stage.cloud._clients["cloudformation"] = MemoryCloudFormation(stacks)  # type: ignore[attr-defined]
    assert ids(ask(terminal, IDS, "--stage", "prod")) == ["run-1", "run-2", "007"]
    with pytest.raises(LocalStageError, match="The stage dev has no lake"):
        terminal("query", IDS, "--stage", "dev")
    assert ids(ask(terminal, IDS, "--stage", "dev", "--in", str(folder))) == [
        "run-1",
        "run-2",
        "007",
    ]


def test_a_refusal_is_not_taken_for_a_stage_without_a_lake(
    terminal: Terminal, folder: Path
) -> None:
    refused = MemoryCloudFormation({}, client_error("DescribeStacks", "AccessDenied"))
    terminal.stage.cloud._clients["cloudformation"] = refused  # type: ignore[attr-defined]
    with pytest.raises(LocalStageError, match="AccessDenied"):
        terminal("query", IDS, "--stage", "prod")


def test_tenants_that_differ_in_case_alone_are_not_taken_for_one(
    terminal: Terminal, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_names, "folds_case", lambda folder: True)
    put(terminal, folder)
    assert len(ask(terminal, IDS, *AT)) == 3
    brought = set((tmp_path / "cache").rglob("*.parquet"))
    with pytest.raises(LocalStageError, match="tenant_id=ACME and tenant_id=acme for one folder"):
        ask(terminal, IDS, *AT, "--tenant", "ACME")
    terminal.record("run-1", started(), ended(), tenant="ACME")
    monkeypatch.setattr(file_names, "folds_case", lambda folder: False)
    terminal("export", "--into", str(folder), "--tenant", "ACME")
    monkeypatch.setattr(file_names, "folds_case", lambda folder: True)
    put(terminal, folder)
    with pytest.raises(LocalStageError, match="tenant_id=ACME and tenant_id=acme for one folder"):
        ask(terminal, IDS, *AT)
    assert set((tmp_path / "cache").rglob("*.parquet")) == brought
    assert ids(ask(terminal, IDS, *AT, "--tenant", "acme")) == ["run-1", "run-2"]


def test_an_empty_lake_on_s3_has_empty_tables(terminal: Terminal, folder: Path) -> None:
    assert ask(terminal, IDS, *AT) == []
