"""A lake on S3 brought to this machine: what is new, object by object, and nothing twice."""

import os
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from botocore.exceptions import ClientError

from functions.core import lake
from functions.core.lake import Table
from local.commands import LocalStageError
from local.progress import bar

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

_AT_ONCE: Final = 10
"""As many as botocore keeps connections for."""
_SUFFIX: Final = ".parquet"
_FILE: Final = re.compile(r"[a-z]+/tenant_id=[^/]+/day=[0-9-]{10}/[^/]+\.parquet")
"""What a lake holds: no other name becomes a path here, whoever owns the bucket."""
_ROUNDS: Final = 3


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
        bucket, _, prefix = rest.partition("/")
        if scheme != "s3" or not bucket or ".." in rest.split("/"):
            failed = f"{text} is no address of a lake."
            raise LocalStageError(failed, "Write s3://BUCKET/lake/, or name a folder with `--in`.")
        return cls(bucket, f"{prefix.rstrip('/')}/" if prefix.strip("/") else "")


class _Listed(NamedTuple):
    """`name` is the file's in the cache: it says which version of the object it holds."""

    key: str
    name: str


def bring(s3: "S3Client", url: LakeUrl, scope: Scope, cache: Path) -> Path:
    """The folder below `cache` that holds, of the scope, what the lake holds now.

    Beyond the scope it holds what was brought before. An object is brought once, as long as its
    ETag stays; what is no longer in the lake is removed.
    """
    folder = cache / url.bucket / url.prefix
    for _ in range(_ROUNDS):
        if _brought(s3, url, scope, folder):
            return folder
    failed = f"Files of {url.bucket} are replaced faster than they can be read."
    raise LocalStageError(failed, "Ask again in a minute.")


def _brought(s3: "S3Client", url: LakeUrl, scope: Scope, folder: Path) -> bool:
    """Whether it has all that was listed, and nothing else of the scope."""
    listed = [each for table in lake.TABLES for each in _listed(s3, url, table, scope)]
    wanted = {each.name for each in listed}
    missing = [each for each in listed if not (folder / each.name).exists()]
    with bar() as progress, ThreadPoolExecutor(_AT_ONCE) as pool:
        task = progress.add_task("objects", total=len(missing))
        try:
            whole = True
            for is_there in pool.map(lambda each: _bring_one(s3, url, each, folder), missing):
                whole = whole and is_there
                progress.advance(task)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    for there in _there(folder, scope) - wanted:
        (folder / there).unlink(missing_ok=True)
    return whole


def _listed(s3: "S3Client", url: LakeUrl, table: Table, scope: Scope) -> Iterator[_Listed]:
    below = f"tenant_id={scope.tenant_id}/" if scope.tenant_id else ""
    request: dict[str, Any] = {"Bucket": url.bucket, "Prefix": f"{url.prefix}{table.name}/{below}"}
    while True:
        page = s3.list_objects_v2(**request)
        for each in page.get("Contents", ()):
            name = each["Key"].removeprefix(url.prefix)
            if _FILE.fullmatch(name) and scope.has_day(_day_of(name)):
                etag = each["ETag"].strip('"')
                yield _Listed(each["Key"], f"{name.removesuffix(_SUFFIX)}~{etag}{_SUFFIX}")
        if not page.get("IsTruncated"):
            return
        request["ContinuationToken"] = page["NextContinuationToken"]


def _day_of(name: str) -> str:
    return name.rpartition("/day=")[2].partition("/")[0]


def _there(folder: Path, scope: Scope) -> set[str]:
    """The names of files that the cache has of the scope."""
    tenants = f"tenant_id={scope.tenant_id or '*'}"
    found = (path.relative_to(folder) for path in folder.glob(f"*/{tenants}/day=*/*{_SUFFIX}"))
    return {str(path) for path in found if scope.has_day(_day_of(str(path)))}


def _bring_one(s3: "S3Client", url: LakeUrl, listed: _Listed, folder: Path) -> bool:
    """False when it was replaced or deleted since it was listed."""
    place = folder / listed.name
    place.parent.mkdir(parents=True, exist_ok=True)
    etag = place.stem.rpartition("~")[2]
    unfinished = place.with_suffix(f".{os.getpid()}.unfinished")
    try:
        answer = s3.get_object(Bucket=url.bucket, Key=listed.key, IfMatch=f'"{etag}"')
        with unfinished.open("wb") as file:
            shutil.copyfileobj(answer["Body"], file)
        unfinished.replace(place)
    except ClientError as error:
        if error.response["Error"]["Code"] not in {"NoSuchKey", "PreconditionFailed"}:
            raise
        return False
    finally:
        unfinished.unlink(missing_ok=True)
    return True
