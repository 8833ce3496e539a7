"""The command `runtally query`: SQL over what was exported, or over a stage's lake on S3."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

from boto3.session import Session
from cyclopts import Parameter
from rich.console import Console

from functions.core import times
from functions.core.errors import Rejected
from functions.core.ids import check_tenant_id
from functions.core.lake import day_at
from local.answers import write_csv, write_json, write_table
from local.aws_errors import explaining
from local.cloud import Account, Cloud
from local.commands import LocalStageError
from local.connect import LOCAL, STAGE_VARIABLE, connect, lake_of_stage
from local.lake_cache import LakeUrl, Scope, brought
from local.moments import Since, Until
from local.paths import LAKE, cache
from local.querying import Answer, asked
from local.questions import QUESTIONS
from local.reading import TENANT_VARIABLE
from local.tables import plain_table


def cloud_of(stage: str | None, profile: str | None, region: str | None) -> Cloud:
    """Where the stage is; without one, the account of the profile. Raises LocalStageError."""
    if stage == LOCAL:
        return connect(stage, profile, region).cloud
    with explaining():
        return Account(Session(profile_name=profile, region_name=region))


def query(  # noqa: PLR0913 - one an option
    sql: str | None = None,
    /,
    *,
    named: str | None = None,
    list_: Annotated[bool, Parameter(name="--list")] = False,
    in_: Annotated[Path | None, Parameter(name="--in", show_default=lambda _: LAKE.name)] = None,
    lake: str | None = None,
    tenant: Annotated[
        str | None, Parameter(help="Only this tenant's rows.", env_var=TENANT_VARIABLE)
    ] = None,
    since: Annotated[
        Since, Parameter(help="Only runs that began on that day (UTC) or later.")
    ] = None,
    until: Annotated[Until, Parameter(help="Only runs that began on days before.")] = None,
    stage: Annotated[
        str | None,
        Parameter(help="The stage whose lake to ask, on S3.", env_var=STAGE_VARIABLE),
    ] = None,
    profile: Annotated[str | None, Parameter(help="Profile of the AWS configuration.")] = None,
    region: Annotated[str | None, Parameter(help="AWS region; else the profile's.")] = None,
    as_csv: Annotated[bool, Parameter(name="--csv", help="Print CSV.")] = False,
    as_json: Annotated[
        bool, Parameter(name="--json", help="Print a JSON list of objects.")
    ] = False,
    clouds: Annotated[
        Callable[[str | None, str | None, str | None], Cloud], Parameter(parse=False)
    ] = cloud_of,
) -> None:
    """Ask SQL of the tables runs, calls and phases, by DuckDB: of exported files, or of a lake.

    A lake's new and changed objects are brought to this machine first, and kept for the next
    question: narrow it with --tenant, --since and --until. Asking changes nothing.

    Parameters
    ----------
    sql
        One SELECT; `DESCRIBE calls` says what columns a table has.
    named
        A question that is ready, by its name.
    list_
        Show the ready questions and their SQL.
    in_
        The folder that `runtally export` wrote.
    lake
        Such as s3://BUCKET/lake/, instead of a stage's.
    """
    if list_:
        _list_questions()
        return
    text = _sql(sql, named)
    scope = _scope(tenant, since, until)
    with (
        _folder(in_, lake, stage, lambda: clouds(stage, profile, region), scope) as folder,
        asked(text, folder, scope) as answer,
    ):
        _writer(as_csv=as_csv, as_json=as_json)(answer)


def _sql(sql: str | None, named: str | None) -> str:
    if (sql is None) == (named is None):
        advice = 'Such as `runtally query "SELECT count(*) FROM calls"`; `--list` has examples.'
        raise LocalStageError("Give SQL, or the name of a question with `--named`.", advice)
    if named is None:
        return sql or ""
    if named not in QUESTIONS:
        failed = f"There is no question {named}."
        raise LocalStageError(failed, f"These are ready: {', '.join(QUESTIONS)}.")
    return QUESTIONS[named].sql


def _scope(tenant: str | None, since: str | None, until: str | None) -> Scope:
    """Whole days: the one of `since`, and up to the one that `until` is in, or is the end of."""
    if tenant is not None:
        try:
            check_tenant_id(tenant)
        except Rejected as rejected:
            failed = f"Refused: `--tenant`: {rejected.detail}."
            raise LocalStageError(failed, "Without it, all tenants' rows are asked.") from None
    first = None if since is None else day_at(times.parse(since))
    last = None if until is None else day_at(max(0, times.parse(until) - 1))
    return Scope(tenant, first, last)


@contextmanager
def _folder(
    in_: Path | None, lake: str | None, stage: str | None, cloud: Callable[[], Cloud], scope: Scope
) -> Iterator[Path]:
    """Where the files are that are meant: those of a lake are brought first, and stay as they are
    within the `with` block."""
    if in_ is not None and lake is not None:
        raise LocalStageError("`--in` and `--lake` exclude each other.", "Give one of them.")
    if in_ is None and (lake or stage):
        with explaining():
            there = cloud()
            url = LakeUrl.parse(lake or lake_of_stage(stage or "", there))
            with (
                closing(there.client("s3")) as s3,
                brought(s3, url, scope, cache() / "lakes") as folder,
            ):
                yield folder
        return
    folder = in_ or LAKE
    if not folder.is_dir():
        advice = "`runtally export` makes one; `--in` names another, `--stage` a stage's lake."
        raise LocalStageError(f"There is no folder {folder}.", advice)
    yield folder


def _writer(*, as_csv: bool, as_json: bool) -> Callable[[Answer], None]:
    if as_csv and as_json:
        raise LocalStageError("`--csv` and `--json` exclude each other.", "Give one of them.")
    return write_csv if as_csv else write_json if as_json else write_table


def _list_questions() -> None:
    out = Console()
    table = plain_table()
    for name, question in QUESTIONS.items():
        table.add_row(name, question.about)
    out.print(table)
    for name, question in QUESTIONS.items():
        out.print(f"\n-- {name}{question.sql}", markup=False, highlight=False, soft_wrap=True)
