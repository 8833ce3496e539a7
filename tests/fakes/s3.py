"""S3 in memory: one bucket with versions, at the interface of boto3's client."""

import hashlib
import io
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.fakes.calls import Calls, client_error

_KEY_BYTES = 1024
_NOW = datetime(2026, 11, 30, tzinfo=UTC)


class Version(NamedTuple):
    """One that is no longer the object; without content, a delete marker."""

    version_id: str
    content: bytes | None


def _etag(content: bytes) -> str:
    """Quotes belong to it."""
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


def _read(body: Any) -> bytes:
    """A file is left where it was: botocore rewinds it to ask again."""
    if isinstance(body, bytes):
        return bytes(body)
    start = body.tell()
    content: bytes = body.read()
    body.seek(start)
    return content


def _is_passed(key: str, number: int, request: dict[str, Any], versions: list[Version]) -> bool:
    """Whether a page that goes on after a version is past this one; one that is gone by now is
    taken for the last of its name."""
    marker: str = request.get("KeyMarker", "")
    if key != marker:
        return key < marker
    ids = [each.version_id for each in versions]
    after = request["VersionIdMarker"]
    return after not in ids or number <= ids.index(after)


class MemoryS3:
    """`most_versions` is how many a page of versions holds, `undeletable` the keys whose versions
    DeleteObjects refuses, each by itself."""

    def __init__(self, calls: Calls | None = None) -> None:
        self.calls = calls or Calls()
        self.objects: dict[str, bytes] = {}
        self.metadata: dict[str, dict[str, str]] = {}
        self.older: dict[str, list[Version]] = {}
        """By key, the newest first."""
        self.most_versions = 1_000
        self.undeletable: set[str] = set()
        self.refused: set[str] = set()
        """Keys that PutObject refuses."""
        self.lock_until: datetime | None = None
        """What is put from now on stays until then, as by Object Lock in compliance mode."""
        self.locked: dict[str, datetime] = {}
        """By version id; a test that takes one out ends its lock."""
        self.stored_at: dict[str, datetime] = {}
        """By key, what a test says of it."""
        self._ids: dict[str, str] = {}
        self._made = 0

    def close(self) -> None:
        """There are no connections to close."""

    def put_object(self, **request: Any) -> dict[str, Any]:
        def apply() -> dict[str, Any]:
            key = request["Key"]
            if len(key.encode()) > _KEY_BYTES:
                raise client_error("PutObject", "KeyTooLongError")
            if key in self.refused:
                raise client_error("PutObject", "InternalError")
            if request.get("IfNoneMatch") == "*" and key in self.objects:
                raise client_error("PutObject", "PreconditionFailed")
            self._age(key)
            self._ids[key] = self._new_id()
            self.objects[key] = _read(request["Body"])
            if self.lock_until:
                self.locked[self._ids[key]] = self.lock_until
            self.metadata[key] = request.get("Metadata", {})
            return {}

        return self.calls("s3.put_object", apply)

    def get_object(self, **request: Any) -> dict[str, Any]:
        def apply() -> dict[str, Any]:
            key = request["Key"]
            if key not in self.objects:
                raise client_error("GetObject", "NoSuchKey")
            content = self.objects[key]
            if request.get("IfMatch", etag := _etag(content)) != etag:
                raise client_error("GetObject", "PreconditionFailed")
            if "Range" in request:
                first, last = map(int, request["Range"].removeprefix("bytes=").split("-"))
                if first >= len(content):
                    raise client_error("GetObject", "InvalidRange")
                content = content[first : last + 1]
            return {
                "Body": io.BytesIO(content),
                "ContentLength": len(content),
                "Metadata": self.metadata.get(key, {}),
            }

        return self.calls("s3.get_object", apply)

    def head_object(self, **request: Any) -> dict[str, Any]:
        def apply() -> dict[str, Any]:
            key = request["Key"]
            if key not in self.objects:
                raise client_error("HeadObject", "404")
            return {"ContentLength": len(self.objects[key]), "Metadata": self.metadata.get(key, {})}

        return self.calls("s3.head_object", apply)

    def list_objects_v2(self, **request: Any) -> dict[str, Any]:
        """By key, as many a page as `most_versions` says."""

        def apply() -> dict[str, Any]:
            after = request.get("ContinuationToken", "")
            keys = sorted(k for k in self.objects if k.startswith(request["Prefix"]) and k > after)
            page = keys[: self.most_versions]
            contents = [
                {
                    "Key": k,
                    "LastModified": self.stored_at.get(k, _NOW),
                    "ETag": _etag(self.objects[k]),
                }
                for k in page
            ]
            more = {"NextContinuationToken": page[-1]} if len(page) < len(keys) else {}
            return {"Contents": contents, "IsTruncated": bool(more), **more} if page else {}

        return self.calls("s3.list_objects_v2", apply)

    def list_object_versions(self, **request: Any) -> dict[str, Any]:
        """By key, the newest version of each first."""

        def apply() -> dict[str, Any]:
            keys = sorted(
                key
                for key in {*self.objects, *self.older}
                if key.startswith(request.get("Prefix", ""))
            )
            found = [
                (key, each, number == 0)
                for key in keys
                for number, each in enumerate(self._versions_of(key))
                if not _is_passed(key, number, request, self._versions_of(key))
            ]
            page = found[: min(request.get("MaxKeys", 1_000), self.most_versions)]
            listed = [
                ({"Key": key, "VersionId": v.version_id, "IsLatest": latest}, v.content)
                for key, v, latest in page
            ]
            truncated = len(page) < len(found)
            last: dict[str, Any] = {}
            if truncated:
                key, version, _ = page[-1]
                last = {"NextKeyMarker": key, "NextVersionIdMarker": version.version_id}
            return {
                **last,
                "IsTruncated": truncated,
                "Versions": [entry for entry, content in listed if content is not None],
                "DeleteMarkers": [entry for entry, content in listed if content is None],
            }

        return self.calls("s3.list_object_versions", apply)

    def delete_objects(self, **request: Any) -> dict[str, Any]:
        """A version, whether there is one or not; without a version, a delete marker is put."""

        def apply() -> dict[str, Any]:
            unwanted = request["Delete"]["Objects"]
            if not 0 < len(unwanted) <= 1_000:
                raise client_error("DeleteObjects", "MalformedXML")
            # Without a version, as the reference lets S3 answer.
            refused = {each["Key"] for each in unwanted} & self.undeletable
            errors = [{"Key": key, "Code": "InternalError"} for key in sorted(refused)]
            for each in unwanted:
                if each.get("VersionId") in self.locked:
                    errors.append({"Key": each["Key"], "Code": "AccessDenied"})
                elif each["Key"] not in self.undeletable:
                    self._delete(each["Key"], each.get("VersionId"))
            return {"Errors": errors} if errors else {}

        return self.calls("s3.delete_objects", apply)

    def get_object_retention(self, **request: Any) -> dict[str, Any]:
        def apply() -> dict[str, Any]:
            key, version_id = request["Key"], request["VersionId"]
            if version_id not in {each.version_id for each in self._versions_of(key)}:
                raise client_error("GetObjectRetention", "NoSuchVersion")
            if version_id not in self.locked:
                raise client_error("GetObjectRetention", "NoSuchObjectLockConfiguration")
            until = self.locked[version_id]
            return {"Retention": {"Mode": "COMPLIANCE", "RetainUntilDate": until}}

        return self.calls("s3.get_object_retention", apply)

    def _new_id(self) -> str:
        self._made += 1
        return f"v-{self._made}"

    def _versions_of(self, key: str) -> list[Version]:
        """What a test put there by hand has no id, as an object from before there were versions."""
        older = self.older.get(key, [])
        if key not in self.objects:
            return older
        return [Version(self._ids.get(key, "null"), self.objects[key]), *older]

    def _age(self, key: str) -> None:
        if key in self.objects:
            self.older[key] = self._versions_of(key)
            del self.objects[key]

    def _delete(self, key: str, version_id: str | None) -> None:
        self._age(key)
        left = [each for each in self.older.pop(key, []) if each.version_id != version_id]
        if version_id is None:
            left.insert(0, Version(self._new_id(), None))
        if left and left[0].content is not None:
            self._ids[key], self.objects[key] = left.pop(0)  # type: ignore[assignment] # checked
        if left:
            self.older[key] = left

    def generate_presigned_url(self, operation: str, **request: Any) -> str:
        """Signing asks nobody, so it is no call."""
        signed = request["Params"] | {"Expires": request["ExpiresIn"]}
        return f"https://memory.example/{operation}?{urlencode(signed)}"
