"""What a bucket holds, page after page, in order of the keys, a thousand a request."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client
    from types_boto3_s3.type_defs import ObjectTypeDef


class Version(NamedTuple):
    """Of an object, or a delete marker; `is_shown` is the one that readers find."""

    key: str
    is_shown: bool


def listed(s3: "S3Client", bucket: str, prefix: str) -> Iterator["ObjectTypeDef"]:
    """The objects whose keys begin so."""
    request: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix}
    while True:
        page = s3.list_objects_v2(**request)
        yield from page.get("Contents", ())
        if not page.get("IsTruncated"):
            return
        request["ContinuationToken"] = page["NextContinuationToken"]


def versions_listed(s3: "S3Client", bucket: str, prefix: str) -> Iterator[Version]:
    """All versions of the objects whose keys begin so, also of those that are deleted."""
    request: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix}
    while True:
        page = s3.list_object_versions(**request)
        found = [Version(each["Key"], each["IsLatest"]) for each in page.get("Versions", ())]
        found += [Version(each["Key"], False) for each in page.get("DeleteMarkers", ())]
        yield from sorted(found)
        if not page.get("IsTruncated"):
            return
        request["KeyMarker"] = page["NextKeyMarker"]
        request["VersionIdMarker"] = page["NextVersionIdMarker"]
