"""The lake's files with all their versions: deleted, and hidden where a lock holds them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import batched, groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

from functions.core import lake_ports
from functions.core.errors import Unavailable
from functions.core.keys import RunRef
from functions.core.lake_ports import Taken
from functions.core.times import SECOND

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

_FILES_A_PART: Final = 300
_VERSIONS_A_REQUEST: Final = 1_000
"""S3's own bound, of a page and of a deletion."""
_GONE: Final = frozenset({"NoSuchVersion", "NoSuchKey"})


class _Version(NamedTuple):
    """A delete marker is one, too."""

    key: str
    version_id: str
    is_marker: bool
    is_latest: bool


type LockSpread = Callable[
    [Callable[[_Version], int | None], Iterable[_Version]], Iterable[int | None]
]
"""How locks are looked at: `map` one after the other, an executor's `map` at once."""


class S3LakeVersions:
    """core.lake_ports.LakeObjects on the lake's bucket."""

    def __init__(self, client: "S3Client", bucket: str, spread: LockSpread = map) -> None:
        self._client = client
        self._bucket = bucket
        self._spread = spread

    def take_run(self, ref: RunRef, days: Iterable[str]) -> Iterator[Taken]:
        every = [key for day in days for key in lake_ports.objects_of_run(ref, day)]
        # Below a key there may be that of another run, whose id begins with all of it.
        files = [[each for each in self._versions_below(key) if each.key == key] for key in every]
        if found := [file for file in files if file]:
            yield self._take(found)

    def take_tenant(self, tenant_id: str) -> Iterator[Taken]:
        for prefix in lake_ports.objects_of_tenant(tenant_id):
            files = (list(of) for _, of in groupby(self._versions_below(prefix), lambda v: v.key))
            for part in batched(files, _FILES_A_PART, strict=False):
                yield self._take(part)

    def runs_of_tenant(self, tenant_id: str) -> Iterator[RunRef]:
        versions = self._versions_below(lake_ports.files_of_calls(tenant_id))
        for key, _ in groupby(versions, lambda version: version.key):
            with suppress(ValueError):  # what somebody else put there is of no run
                yield lake_ports.parse_object(key)[0]

    def files_below(self, prefix: str) -> Iterator[tuple[str, bool]]:
        """By key, each version's, and whether it is the one that readers find. Raises
        Unavailable."""
        for version in self._versions_below(prefix):
            yield version.key, version.is_latest and not version.is_marker

    def _take(self, files: Sequence[Sequence[_Version]]) -> Taken:
        """Delete all versions of these files; those under a lock, S3 refuses, and then what hides
        them has to stay, or to come."""
        versions = [each for file in files for each in file if not each.is_marker]
        refused = self._delete(versions)
        ends = self._ends_of_locks([each for each in versions if each.key in refused], refused)
        still = {each.key for each in ends}
        shown = {each.key for each in versions if each.is_latest and each.key in still}
        if shown:
            self._hide(sorted(shown))
        markers = [v for file in files for v in file if v.is_marker and v.key not in still]
        for key, why in self._delete(markers).items():
            raise Unavailable(f"S3 delete of {key}: {why}")
        gone = {file[0].key for file in files} - still
        return Taken(
            names=len(gone | shown),
            versions=len(versions) - len(ends) + len(markers),
            locked_until=max(ends.values(), default=None),
        )

    def _ends_of_locks(
        self, versions: Sequence[_Version], refused: Mapping[str, str]
    ) -> dict[_Version, int]:
        """When each may be deleted, but for those that are gone: of a name's versions S3 need not
        say which it refused. Raises Unavailable for one that no lock holds."""
        ends = self._spread(lambda each: self._end_of_lock(each, refused[each.key]), versions)
        return {each: end for each, end in zip(versions, ends, strict=True) if end is not None}

    def _end_of_lock(self, version: _Version, why: str) -> int | None:
        try:
            answer = self._client.get_object_retention(
                Bucket=self._bucket, Key=version.key, VersionId=version.version_id
            )
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ClientError) and error.response["Error"]["Code"] in _GONE:
                return None
            raise Unavailable(f"S3 delete of {version.key}: {why}; its lock: {error}") from error
        until = answer["Retention"]["RetainUntilDate"]
        if until <= datetime.now(UTC):
            raise Unavailable(f"S3 delete of {version.key}: {why}; its lock is over")
        return round(until.timestamp()) * SECOND

    def _versions_below(self, prefix: str) -> Iterator[_Version]:
        """By key. What is deleted meanwhile is passed already: pages go on after a name."""
        after: dict[str, Any] = {}
        while True:
            try:
                answer = self._client.list_object_versions(
                    Bucket=self._bucket, Prefix=prefix, MaxKeys=_VERSIONS_A_REQUEST, **after
                )
            except (ClientError, BotoCoreError) as error:
                raise Unavailable(f"S3 list of {prefix}: {error}") from error
            found = [_version(each, is_marker=False) for each in answer.get("Versions", ())]
            found += [_version(each, is_marker=True) for each in answer.get("DeleteMarkers", ())]
            yield from sorted(found, key=lambda version: version.key)
            if not answer["IsTruncated"]:
                return
            after = {
                "KeyMarker": answer["NextKeyMarker"],
                "VersionIdMarker": answer["NextVersionIdMarker"],
            }

    def _hide(self, names: Sequence[str]) -> None:
        for part in batched(names, _VERSIONS_A_REQUEST, strict=False):
            for key, why in self._request([{"Key": key} for key in part]).items():
                raise Unavailable(f"S3 delete of {key}: {why}")

    def _delete(self, versions: Sequence[_Version]) -> dict[str, str]:
        """The keys of which not all was deleted, and why."""
        refused: dict[str, str] = {}
        for part in batched(versions, _VERSIONS_A_REQUEST, strict=False):
            unwanted = [{"Key": each.key, "VersionId": each.version_id} for each in part]
            refused |= self._request(unwanted)
        return refused

    def _request(self, unwanted: Sequence[dict[str, str]]) -> dict[str, str]:
        try:
            answer = self._client.delete_objects(
                Bucket=self._bucket,
                Delete={"Objects": unwanted, "Quiet": True},  # type: ignore[typeddict-item]
            )
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(f"S3 delete of {unwanted[0]['Key']}: {error}") from error
        return {each["Key"]: each.get("Code", "") for each in answer.get("Errors", ())}


def _version(entry: Mapping[str, Any], *, is_marker: bool) -> _Version:
    return _Version(entry["Key"], entry["VersionId"], is_marker, entry["IsLatest"])
