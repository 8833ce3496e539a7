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
        versions of each part. Raises Unavailable once what was done is counted."""
        while part := self._first_part(prefix):
            refused = self._delete(part)
            gone = [version for version in part if version not in refused]
            if gone:
                kept = {version.key for version in refused}
                yield len({version.key for version in gone} - kept), len(gone)
            for version, why in refused.items():
                raise Unavailable(f"S3 delete of {version.key}: {why}")

    def _first_part(self, prefix: str) -> Sequence[_Version]:
        """All versions of each name, so that no name is counted in two parts."""
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
        whole = [version for version in found if version.key != last]
        return whole if answer["IsTruncated"] and whole else found

    def _delete(self, part: Sequence[_Version]) -> dict[_Version, str]:
        """Those that were not deleted, and why."""
        unwanted = [{"Key": each.key, "VersionId": each.version_id} for each in part]
        try:
            answer = self._client.delete_objects(
                Bucket=self._bucket,
                Delete={"Objects": unwanted, "Quiet": True},  # type: ignore[typeddict-item]
            )
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(f"S3 delete of {part[0].key}: {error}") from error
        return {
            _Version(each["Key"], each.get("VersionId", "")): each.get("Code", "")
            for each in answer.get("Errors", ())
        }
