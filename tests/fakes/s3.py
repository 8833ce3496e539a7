"""S3 in memory: one bucket, at the interface of boto3's client."""

import io
from typing import Any
from urllib.parse import urlencode

from tests.fakes.calls import Calls, client_error

_KEY_BYTES = 1024


class MemoryS3:
    def __init__(self, calls: Calls | None = None) -> None:
        self.calls = calls or Calls()
        self.objects: dict[str, bytes] = {}
        self.metadata: dict[str, dict[str, str]] = {}

    def close(self) -> None:
        """There are no connections to close."""

    def put_object(self, **request: Any) -> dict[str, Any]:
        def apply() -> dict[str, Any]:
            key = request["Key"]
            if len(key.encode()) > _KEY_BYTES:
                raise client_error("PutObject", "KeyTooLongError")
            if request.get("IfNoneMatch") == "*" and key in self.objects:
                raise client_error("PutObject", "PreconditionFailed")
            self.objects[key] = bytes(request["Body"])
            self.metadata[key] = request.get("Metadata", {})
            return {}

        return self.calls("s3.put_object", apply)

    def get_object(self, **request: Any) -> dict[str, Any]:
        def apply() -> dict[str, Any]:
            key = request["Key"]
            if key not in self.objects:
                raise client_error("GetObject", "NoSuchKey")
            content = self.objects[key]
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

    def generate_presigned_url(self, operation: str, **request: Any) -> str:
        """Signing asks nobody, so it is no call."""
        signed = request["Params"] | {"Expires": request["ExpiresIn"]}
        return f"https://memory.example/{operation}?{urlencode(signed)}"
