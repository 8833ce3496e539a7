"""A lake on S3 brought to this machine: what is new, object by object, and nothing twice."""

import glob
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, Self

from botocore.exceptions import ClientError

from functions.core import lake
from functions.core.lake import Table
from local import file_names
from local.commands import LocalStageError
from local.listing import listed
from local.locks import lock
from local.progress import bar

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

_AT_ONCE: Final = 10
"""As many as botocore keeps connections for."""
_SUFFIX: Final = ".parquet"
_FILE: Final = re.compile(r"[a-z]+/tenant_id=[^/]+/day=[0-9-]{10}/[^/]+\.parquet")
"""What a lake holds: no other name becomes a path here, whoever owns the bucket."""
_ROUNDS: Final = 3
_LOCK: Final = ".lock"
_WAITING: Final = "Waiting for another `runtally query` of this lake."


class Scope(NamedTuple):
    """A part of a lake, as whole partitions: a tenant's, or everyone's, and days from first to
    last; None is no limit."""

    tenant_id: str | None = None
    first_day: str | None = None
    last_day: str | None = None

    def has_day(self, day: str) -> bool:
        return (self.first_day or day) <= day <= (self.last_day or day)


@dataclass(frozen=True, slots=True)
class LakeUrl:
    """Where a lake is: `prefix` is empty, or ends with a slash."""

    bucket: str
    prefix: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises LocalStageError."""
        scheme, _, rest = text.partition("://")
        bucket, *folders = rest.rstrip("/").split("/")
        if scheme != "s3" or {"", ".", ".."} & {bucket, *folders}:  # it becomes a path here
            failed = f"{text} is no address of a lake."
            raise LocalStageError(failed, "Write s3://BUCKET/lake/, or name a folder with `--in`.")
        return cls(bucket, "".join(f"{folder}/" for folder in folders))


class _Listed(NamedTuple):
    """`name` is the file's in the cache: it says which version of the object it holds."""

    key: str
    name: str


@contextmanager
def brought(s3: "S3Client", url: LakeUrl, scope: Scope, cache: Path) -> Iterator[Path]:
    """The folder below `cache` that holds, of the scope, what the lake holds now.

    Nobody changes it within the `with` block: whoever has something else to bring waits. Beyond the
    scope it holds what was brought before. An object is brought once, as long as its ETag stays;
    what is no longer in the lake is removed. Raises LocalStageError.
    """
    folder = cache / url.bucket / url.prefix
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("w") as locked:
        if not any(_bring(s3, url, scope, folder, locked) for _ in range(_ROUNDS)):
            failed = f"Files of {url.bucket} are replaced faster than they can be read."
            raise LocalStageError(failed, "Ask again in a minute.")
        yield folder


def _bring(s3: "S3Client", url: LakeUrl, scope: Scope, folder: Path, locked: IO[Any]) -> bool:
    """Whether it has all that was listed, and nothing else of the scope, under a shared lock.

    Others may have come in between whenever the lock changes its kind: so it is looked at last.
    """
    lock(locked, "shared", _WAITING)
    files = [each for table in lake.TABLES for each in _files(s3, url, table, scope)]
    wanted = {each.name for each in files}
    _check_tenants(wanted, folder, scope)
    if _there(folder, scope) == wanted:
        return True
    lock(locked, "exclusive", _WAITING)
    there = _there(folder, scope)
    _bring_all(s3, url, [each for each in files if each.name not in there], folder)
    for surplus in there - wanted:
        (folder / surplus).unlink(missing_ok=True)
    lock(locked, "shared", _WAITING)
    return _there(folder, scope) == wanted


def _bring_all(s3: "S3Client", url: LakeUrl, missing: Sequence[_Listed], folder: Path) -> None:
    with bar() as progress, ThreadPoolExecutor(_AT_ONCE) as pool:
        task = progress.add_task("objects", total=len(missing))
        try:
            for _ in pool.map(lambda each: _bring_one(s3, url, each, folder), missing):
                progress.advance(task)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _check_tenants(wanted: Iterable[str], folder: Path, scope: Scope) -> None:
    """Where two tenants had one folder, one's rows would be taken for the other's, and removed."""
    if not file_names.folds_case(folder):
        return
    tenants = {name.split("/")[1] for name in wanted}
    tenants |= {path.name for path in folder.glob("*/tenant_id=*")}
    tenants |= {f"tenant_id={scope.tenant_id}"} if scope.tenant_id else set()
    if both := file_names.alike(sorted(tenants)):
        failed = f"The file system of {folder} takes {both[0]} and {both[1]} for one folder."
        raise LocalStageError(failed, "Set XDG_CACHE_HOME to where a and A are two names.")


def _files(s3: "S3Client", url: LakeUrl, table: Table, scope: Scope) -> Iterator[_Listed]:
    below = f"tenant_id={scope.tenant_id}/" if scope.tenant_id else ""
    for each in listed(s3, url.bucket, f"{url.prefix}{table.name}/{below}"):
        name = each["Key"].removeprefix(url.prefix)
        if _FILE.fullmatch(name) and scope.has_day(_day_of(name)):
            etag = each["ETag"].strip('"')
            yield _Listed(each["Key"], f"{name.removesuffix(_SUFFIX)}~{etag}{_SUFFIX}")


def _day_of(name: str) -> str:
    return name.rpartition("/day=")[2].partition("/")[0]


def _there(folder: Path, scope: Scope) -> set[str]:
    """The names of files that the cache has of the scope."""
    tenants = f"tenant_id={glob.escape(scope.tenant_id) if scope.tenant_id else '*'}"
    found = (path.relative_to(folder) for path in folder.glob(f"*/{tenants}/day=*/*{_SUFFIX}"))
    return {str(path) for path in found if scope.has_day(_day_of(str(path)))}


def _bring_one(s3: "S3Client", url: LakeUrl, listed: _Listed, folder: Path) -> None:
    """It is not there when it was replaced or deleted since it was listed."""
    place = folder / listed.name
    place.parent.mkdir(parents=True, exist_ok=True)
    etag = place.stem.rpartition("~")[2]
    unfinished = place.with_suffix(".unfinished")
    try:
        answer = s3.get_object(Bucket=url.bucket, Key=listed.key, IfMatch=f'"{etag}"')
        with unfinished.open("wb") as file:
            shutil.copyfileobj(answer["Body"], file)
        unfinished.replace(place)
    except ClientError as error:
        if error.response["Error"]["Code"] not in {"NoSuchKey", "PreconditionFailed"}:
            raise
    finally:
        unfinished.unlink(missing_ok=True)
