"""SQL over a lake's files by DuckDB, which may read them, and do nothing else."""

import glob
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from functions.core import lake
from functions.core.lake import Table
from local.commands import LocalStageError
from local.lake_cache import Scope

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_READ: Final = "union_by_name = true"
_BY_FOLDER: Final = (
    "hive_partitioning = true, hive_types = {'tenant_id': 'VARCHAR', 'day': 'VARCHAR'}"
)
"""Files out of scope are not opened. Below a folder that is named after a column, that name would
count: there each file speaks for itself."""
_ROWS_AT_ONCE: Final = 1_000
_ONE_SELECT: Final = "Only a single SELECT can be asked: nothing here is changed by asking."
_TAKEN: Final = (
    "It may be a FROM, WITH, VALUES, DESCRIBE, SUMMARIZE or SHOW, too, and a PIVOT that names its"
    " values: `PIVOT runs ON status IN ('failed', 'succeeded') USING count(*)`."
    " `runtally query --list` has examples."
)
_INTERRUPTED_AGAIN_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Answer:
    """`columns` are names and DuckDB's types; `rows` come as they are taken."""

    columns: Sequence[tuple[str, str]]
    rows: Iterator[tuple[Any, ...]]


@contextmanager
def asked(sql: str, folder: Path, scope: Scope) -> Iterator[Answer]:
    """The answer over the views `runs`, `calls` and `phases`, for the length of a `with` block.

    They have all columns of the lake's tables, and no row where the folder has no file. The SQL is
    one SELECT, which reads no other file, and writes none. Raises LocalStageError for what DuckDB
    does not take.
    """
    import duckdb  # noqa: PLC0415 - takes as long to load as all the rest of the command line

    with tempfile.TemporaryDirectory() as spill, duckdb.connect() as database:
        try:
            select = _one_select(sql)
            _awaited(database, lambda: _ask(database, select, folder, scope, spill))
            described = [(each[0], str(each[1])) for each in database.description or ()]
            yield Answer(described, _rows(database))
        except duckdb.Error as error:
            advice = '`runtally query "DESCRIBE calls"` names a table\'s columns.'
            raise LocalStageError(str(error), advice) from None
        finally:
            _end(database)


def _one_select(sql: str) -> str:
    """Without what ends it, since it is to stand within other SQL, too: semicolons, comments.

    Raises LocalStageError for anything else.
    """
    import duckdb  # noqa: PLC0415 - as above

    statements = duckdb.extract_statements(sql)
    if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
        raise LocalStageError(_ONE_SELECT, _TAKEN)
    text = statements[0].query.encode()  # tokens are found at bytes
    for start, kind in reversed(duckdb.tokenize(statements[0].query)):
        if kind != duckdb.token_type.comment and text[start:].strip() != b";":
            break
        text = text[:start]
    return text.decode()


def _ask(
    database: "DuckDBPyConnection", select: str, folder: Path, scope: Scope, spill: str
) -> None:
    for table in lake.TABLES:
        database.execute(_view(table, folder, scope))
    _lock(database, folder, spill)
    # A COPY or INSERT may stand in a WITH, and nothing that writes below a SELECT.
    database.execute(f"EXPLAIN SELECT * FROM ({select}\n)")  # noqa: S608 - theirs
    database.execute(select)


def _awaited[T](database: "DuckDBPyConnection", act: Callable[[], T]) -> T:
    """What `act` returns, which has DuckDB at work. Ctrl-C breaks it off at once.

    In a thread, since DuckDB looks at signals seldom, and makes a RuntimeError of them.
    """
    answer: Future[T] = Future()
    try:
        _begin(act, answer)
        return answer.result()
    except (KeyboardInterrupt, SystemExit):
        if not answer.cancel():
            _break_off(database, answer)
        raise


def _end(database: "DuckDBPyConnection") -> None:
    """Break off what is at work for rows that nobody took: closing would wait for its end, and the
    next statement does so, too, but can be interrupted."""
    next_: Future[object] = Future()
    _begin(lambda: database.execute("SELECT 1"), next_)
    _break_off(database, next_)


def _begin[T](act: Callable[[], T], answer: Future[T]) -> None:
    def work() -> None:
        if answer.set_running_or_notify_cancel():
            try:
                answer.set_result(act())
            except BaseException as error:  # noqa: BLE001 - it is raised where it is awaited
                answer.set_exception(error)

    Thread(target=work).start()


def _break_off(database: "DuckDBPyConnection", answer: Future[Any]) -> None:
    while not answer.done():
        database.interrupt()  # which is lost on what DuckDB begins only then
        wait([answer], _INTERRUPTED_AGAIN_S)


def _view(table: Table, folder: Path, scope: Scope) -> str:
    """Files are matched by the names of their columns: a later version may have more of them."""
    names = ", ".join(column.name for column in table.columns)
    typed = ", ".join(f"NULL::{column.kind} AS {column.name}" for column in table.columns)
    files = folder / table.name
    rows = f"SELECT {typed} WHERE false"
    if next(files.glob("*/*/*.parquet"), None) is not None:
        matching = f"{glob.escape(str(files.absolute()))}/*/*/*.parquet"
        columns = {column.name for column in table.columns}
        above = {part.partition("=")[0] for part in files.absolute().parts if "=" in part}
        how = "hive_partitioning = false" if above & columns else _BY_FOLDER
        read = f"read_parquet({_text(matching)}, {_READ}, {how})"
        rows += f" UNION ALL BY NAME SELECT * FROM {read}"  # noqa: S608 - our own literals
    limits = (
        ("tenant_id =", scope.tenant_id),
        ("day >=", scope.first_day),
        ("day <=", scope.last_day),
    )
    within = " AND ".join(
        ["true", *(f"{left} {_text(right)}" for left, right in limits if right is not None)]
    )
    return f"CREATE VIEW {table.name} AS SELECT {names} FROM ({rows}) WHERE {within}"  # noqa: S608


def _lock(database: "DuckDBPyConnection", folder: Path, spill: str) -> None:
    """From here on it opens no file but these, loads nothing, and cannot be told otherwise. A
    pattern is looked at, too, before the files that it stands for."""
    database.execute("SET TimeZone = 'UTC'")
    database.execute("SET enable_progress_bar = false")  # it would stand among the rows
    database.execute("SET python_enable_replacements = false")
    database.execute(f"SET temp_directory = {_text(spill)}")
    places = (str(folder.absolute()), glob.escape(str(folder.absolute())), spill)
    allowed = ", ".join(_text(f"{each}/") for each in places)
    database.execute(f"SET allowed_directories = [{allowed}]")
    database.execute("SET enable_external_access = false")
    database.execute("SET lock_configuration = true")


def _rows(database: "DuckDBPyConnection") -> Iterator[tuple[Any, ...]]:
    while rows := _awaited(database, lambda: database.fetchmany(_ROWS_AT_ONCE)):
        yield from rows


def _text(value: str) -> str:
    """As a literal of SQL."""
    return "'" + value.replace("'", "''") + "'"
