"""EventBridge in memory: the default bus, at the interface of boto3's client."""

import json
from typing import Any

from tests.fakes.calls import Calls, client_error

_ENTRY_BYTES = 256 * 1024


class MemoryEvents:
    """`refuses` says of an entry's detail whether it is refused, with the others taken, as AWS does
    when a part of it is down."""

    def __init__(self, calls: Calls | None = None) -> None:
        self.calls = calls or Calls()
        self.taken: list[dict[str, Any]] = []
        self.refuses: Any = lambda detail: False

    def put_events(self, **request: Any) -> dict[str, Any]:
        def apply() -> dict[str, Any]:
            entries = request["Entries"]
            if not 0 < len(entries) <= 10:
                raise client_error("PutEvents", "ValidationException", "1 to 10 entries")
            if sum(map(_size_of, entries)) > _ENTRY_BYTES:
                raise client_error("PutEvents", "ValidationException", "entries too large")
            answers = [self._take(entry) for entry in entries]
            failed = sum("ErrorCode" in answer for answer in answers)
            return {"FailedEntryCount": failed, "Entries": answers}

        return self.calls("events.put_events", apply)

    def close(self) -> None:
        """There are no connections to close."""

    def details(self, detail_type: str) -> list[dict[str, Any]]:
        """The details of all events of one type, in order."""
        return [
            json.loads(entry["Detail"])
            for entry in self.taken
            if entry["DetailType"] == detail_type
        ]

    def _take(self, entry: dict[str, Any]) -> dict[str, str]:
        detail = json.loads(entry["Detail"])
        if self.refuses(detail):
            return {"ErrorCode": "InternalFailure", "ErrorMessage": "try again"}
        self.taken.append(entry)
        return {"EventId": f"e-{len(self.taken)}"}


def _size_of(entry: dict[str, Any]) -> int:
    """https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html"""
    return sum(len(value.encode()) for value in entry.values())
