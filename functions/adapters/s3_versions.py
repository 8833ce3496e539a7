"""Objects with all their versions, which a delete without a version only hides."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

from functions.core import keys
from functions.core.errors import Unavailable
from functions.core.keys import RunRef

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

_VERSIONS_A_PART: Final = 1_000
"""S3's own bound, of a page and of a deletion."""


class _Version(NamedTuple):
    """A delete marker is one, too."""

    key: str
    version_id: str


class _Part(NamedTuple):
    """Versions to delete; of the name that goes on there may be more."""

    versions: Sequence[_Version]
    goes_on: str = ""


class S3Versions:
    """core.deletions.ObjectsOfRun on a bucket."""

    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def take_objects(self, ref: RunRef) -> Iterator[tuple[int, int]]:
        for prefix in (keys.objects_of_run(ref), keys.inbox_prefix(ref)):
            yield from self.take_below(prefix)

    def take_below(self, prefix: str) -> Iterator[tuple[int, int]]:
        """Delete all versions of all objects whose key begins so, 1,000 a part; counts names and
        versions of each part, a name with its last version. Raises Unavailable once what was done
        is counted."""
        begun: set[str] = set()
        while part := self._first_part(prefix):
            refused = self._delete(part.versions)
            gone = [version for version in part.versions if version.key not in refused]
            names = begun | {version.key for version in gone}
            begun = names & {part.goes_on}
            if gone:
                yield len(names - begun), len(gone)
            for key, why in refused.items():
                raise Unavailable(f"S3 delete of {key}: {why}")

    def _first_part(self, prefix: str) -> _Part | None:
        """All versions of each name, or as many of one as fit."""
        try:
            answer = self._client.list_object_versions(
                Bucket=self._bucket, Prefix=prefix, MaxKeys=_VERSIONS_A_PART
            )
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(f"S3 list of {prefix}: {error}") from error
        found = [
            _Version(each["Key"], each["VersionId"])
            for each in (*answer.get("Versions", ()), *answer.get("DeleteMarkers", ()))
        ]
        last = max((version.key for version in found), default="")
        if not found:
            return None
        if not answer["IsTruncated"]:
            return _Part(found)
        whole = [version for version in found if version.key != last]
        return _Part(whole) if whole else _Part(found, goes_on=last)

    def _delete(self, part: Sequence[_Version]) -> dict[str, str]:
        """The keys of which not all was deleted, and why; which versions S3 need not say."""
        unwanted = [{"Key": each.key, "VersionId": each.version_id} for each in part]
        try:
            answer = self._client.delete_objects(
                Bucket=self._bucket,
                Delete={"Objects": unwanted, "Quiet": True},  # type: ignore[typeddict-item]
            )
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(f"S3 delete of {part[0].key}: {error}") from error
        return {each["Key"]: each.get("Code", "") for each in answer.get("Errors", ())}
