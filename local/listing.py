"""What a bucket holds, page after page, in order of the keys, a thousand a request."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client
    from types_boto3_s3.type_defs import ObjectTypeDef


def listed(s3: "S3Client", bucket: str, prefix: str) -> Iterator["ObjectTypeDef"]:
    """The objects whose keys begin so."""
    request: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix}
    while True:
        page = s3.list_objects_v2(**request)
        yield from page.get("Contents", ())
        if not page.get("IsTruncated"):
            return
        request["ContinuationToken"] = page["NextContinuationToken"]
