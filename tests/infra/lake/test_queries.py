"""The queries saved in Athena: Trino's SQL over columns that exist, bounded as partition projection
wants it, and with the answers of the ready questions of `runtally query`."""

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import botocore.session
import pytest
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from cdk.lake_queries import SAVED, SavedQuery
from cdk.settings import settings_of
from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_reading import DynamoDBRunReader
from functions.core import lake
from local import recordings, replay
from local.export_manifest import Manifest
from local.exporting import Export
from local.lake_cache import Scope
from local.paths import ROOT
from local.querying import asked
from local.questions import QUESTIONS
from local.recordings import Recording
from tests import build
from tests.memory_stage import MemoryStage
from tests.page.runs import recording, samples

LONG_AGO_DAYS: Final = 400
FUNCTIONS: Final = {
    *("approx_percentile", "array_agg", "array_join", "array_sort", "coalesce", "count"),
    *("count_if", "date_format", "date_trunc", "max", "max_by", "regexp_replace", "sum"),
}
"""Of those that Athena has, https://trino.io/docs/current/functions/list.html, what is in use:
sqlglot knows the names of all dialects, and minds no other."""

SCHEMA: Final = MappingSchema(
    {table.name: {column.name: column.kind for column in table.columns} for table in lake.TABLES},
    dialect="duckdb",
)

each_saved = pytest.mark.parametrize("saved", SAVED, ids=lambda saved: saved.name)


def parsed(text: str) -> exp.Select:
    """With every column found in a table of the lake. Raises SqlglotError, AssertionError."""
    (tree,) = sqlglot.parse(text, dialect="athena", error_level=sqlglot.ErrorLevel.RAISE)
    assert isinstance(tree, exp.Select)
    called = set(re.findall(r"(\w+)\(", text.lower())) - {"cast"}
    assert called <= FUNCTIONS, called - FUNCTIONS
    grouping = tree.args.get("group")
    assert not (grouping and grouping.args.get("all")), "GROUP BY ALL is DuckDB's"
    found = annotate_types(qualify(tree, schema=SCHEMA, dialect="athena"), schema=SCHEMA)
    assert isinstance(found, exp.Select)
    return found


def bounds(tree: exp.Select) -> dict[str, exp.Expr]:
    """What has to hold of each column for a row to be in the answer; both sides of one type."""
    where = tree.args["where"].this
    every = list(where.flatten()) if isinstance(where, exp.And) else [where]
    compared = [each for each in every if isinstance(each, exp.EQ | exp.GTE)]
    for each in compared:
        assert each.left.is_type(*exp.DataType.TEXT_TYPES) == each.right.is_type(
            *exp.DataType.TEXT_TYPES
        ), f"Athena compares nothing with another type: {each.sql()}"
    return {each.left.name: each for each in compared}


def check(text: str) -> None:
    tree = parsed(text)
    (table,) = tree.find_all(exp.Table)
    assert table.name in {each.name for each in lake.TABLES}
    bound = bounds(tree)
    tenant, day = bound["tenant_id"], bound["day"]
    assert isinstance(tenant, exp.EQ)
    assert isinstance(day, exp.GTE)
    assert tenant.right == exp.Literal.string("TENANT")
    assert not list(day.right.find_all(exp.Column)), "days are not known before rows are"


@each_saved
def test_it_is_sql_of_athena_for_one_tenant_and_a_range_of_days(saved: SavedQuery) -> None:
    check(saved.text)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("GROUP BY 1, 2", "GROUP BY ALL"),
        ("GROUP BY 1, 2", "GROUP 1, 2"),
        ("cost_usd)", "cost_eur)"),
        ("FROM calls", "FROM steps"),
        ("date_format(", "strftime("),
        ("count(*) AS calls", "quantile_disc(duration_ms, 0.5) AS calls"),
        ("tenant_id = 'TENANT' AND ", ""),
        ("tenant_id = 'TENANT' AND", "tenant_id = 'TENANT' OR"),
        ("tenant_id = 'TENANT'", "tenant_id = run_id"),
        ("day >= ", "day != "),
        ("day >= ", "started_at >= "),
        ("date_format(current_date - interval '90' day, '%Y-%m-%d')", "current_date"),
        ("date_format(current_date - interval '90' day, '%Y-%m-%d')", "run_id"),
    ],
)
def test_what_athena_would_not_take_is_noticed(right: str, wrong: str) -> None:
    text = SAVED[0].text
    assert right in text
    with pytest.raises((SqlglotError, AssertionError, KeyError)):
        check(text.replace(right, wrong))


# -- answers ---------------------------------------------------------------------------------------


def recorded() -> list[Recording]:
    """The sample runs and one of errors with ids; and what neither may count: the same of another
    tenant, and long ago."""
    now = time.time_ns()
    errors = ("no step 0123abcd9f", "no step fedcba98", None)
    failed = [
        build.step(n, status="failed", error=error, ended_at=now)
        for n, error in enumerate(errors, 1)
    ]
    odd = recording("demo", "odd", [build.started(now), *failed, build.ended(now, "failed")])
    demo = [*samples(), odd]
    others = [replay.addressed(each, "other", None) for each in demo]
    earlier = [replay.addressed(each, None, f"{each.run_id}-earlier") for each in demo]
    moment = now - LONG_AGO_DAYS * 86_400 * 10**9
    return [*demo, *others, *(retimed(each, moment) for each in earlier)]


def retimed(each: Recording, moment: int) -> Recording:
    messages = tuple(recordings.retime(each.messages, moment))
    return Recording(each.tenant_id, each.run_id, messages)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    stage = MemoryStage(retention_days=36_500)
    client: Any = stage.dynamodb
    reader = DynamoDBRunReader(DynamoDBTable(client, "t"))
    folder = tmp_path_factory.mktemp("lake")
    runs = recorded()
    for run in runs:
        assert stage.ingest(*run.messages) == []
    stage.drain()
    with Manifest.opened(folder) as manifest:
        export = Export(reader, folder, "parquet", manifest, time.time_ns)
        for run in runs:
            assert export(replay.ref_of(run))
    return folder


def answer(sql: str, folder: Path, scope: Scope) -> tuple[list[str], list[tuple[Any, ...]]]:
    with asked(sql, folder, scope) as found:
        return [name for name, _ in found.columns], list(found.rows)


def in_duckdb(text: str) -> str:
    """Athena's percentiles are estimates: exact ones take their place."""
    (tree,) = sqlglot.parse(text.replace("TENANT", "demo"), dialect="athena")
    assert tree
    for each in list(tree.find_all(exp.ApproxQuantile)):
        each.replace(exp.func("quantile_disc", each.this, each.args["quantile"]))
    return tree.sql(dialect="duckdb", unsupported_level=sqlglot.ErrorLevel.RAISE)


@each_saved
def test_it_answers_as_the_ready_question_of_its_name(saved: SavedQuery, folder: Path) -> None:
    newer = (datetime.now(UTC) - timedelta(days=LONG_AGO_DAYS / 2)).strftime("%Y-%m-%d")
    question = QUESTIONS[saved.name.replace(" ", "-")]
    columns, rows = answer(in_duckdb(saved.text), folder, Scope())
    assert (columns, rows) == answer(question.sql, folder, Scope("demo", newer))
    assert rows
    assert rows != answer(question.sql, folder, Scope("demo"))[1]
    assert rows != answer(question.sql, folder, Scope(first_day=newer))[1]


def test_every_ready_question_is_saved() -> None:
    assert [saved.name.replace(" ", "-") for saved in SAVED] == list(QUESTIONS)


# -- who may ask -----------------------------------------------------------------------------------

OF_S3: Final = {
    *("GetObject", "PutObject", "ListBucket", "GetBucketLocation"),
    *("AbortMultipartUpload", "ListMultipartUploadParts"),
}
"""Those that docs/lake.md names: S3's actions are not called as its requests are."""


def rights() -> Iterator[dict[str, Any]]:
    text = (ROOT / "docs/lake.md").read_text().partition("### Who may ask")[2]
    for block in re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield from json.loads(block)


def listed(statement: dict[str, Any], name: str) -> list[str]:
    value = statement[name]
    return value if isinstance(value, list) else [value]


def test_the_rights_that_asking_takes_exist_and_name_the_stacks_own() -> None:
    session = botocore.session.get_session()
    resources = set()
    for statement in rights():
        assert statement["Effect"] == "Allow"
        resources.update(listed(statement, "Resource"))
        for action in listed(statement, "Action"):
            service, name = action.split(":")
            model = session.get_service_model(service)
            assert name in (OF_S3 if service == "s3" else model.operation_names), action
    prefix = settings_of("prod").prefix
    place = "REGION:ACCOUNT"
    database = f"{prefix}_lake".replace("-", "_")
    assert resources >= {
        f"arn:aws:athena:{place}:workgroup/{prefix}-lake",
        f"arn:aws:glue:{place}:database/{database}",
        f"arn:aws:glue:{place}:table/{database}/*",
        f"arn:aws:cloudformation:{place}:stack/{prefix}-lake/*",
        "arn:aws:s3:::LAKE/lake/*",
    }
