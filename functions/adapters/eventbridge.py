"""Events of runs on EventBridge, for programs that chain on them."""

from collections.abc import Callable, Iterator, Sequence
from itertools import batched
from typing import Any, Final

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from functions.core.run_events import SOURCE, RunEvent

_ENTRIES_A_REQUEST: Final = 10


class EventBridgeBus:
    """core.ports.EventBus on the account's default bus.

    The client is made with the first event: most batches of steps bring none, and no function shall
    start more slowly for it.
    """

    def __init__(self, client: Callable[[], Any]) -> None:
        self._client = client

    def publish(self, events: Sequence[RunEvent]) -> list[RunEvent]:
        return [
            event
            for some in batched(events, _ENTRIES_A_REQUEST, strict=False)
            for event in self._refused(some)
        ]

    def _refused(self, events: Sequence[RunEvent]) -> Iterator[RunEvent]:
        """An entry that is refused has an error code in its place, whatever the others have."""
        try:
            answer = self._client().put_events(Entries=[_entry(event) for event in events])
        except (ClientError, BotoCoreError):
            yield from events
            return
        for event, entry in zip(events, answer["Entries"], strict=True):
            if "ErrorCode" in entry:
                yield event


def _entry(event: RunEvent) -> dict[str, str]:
    return {
        "Source": SOURCE,
        "DetailType": event.detail_type,
        "Detail": msgspec.json.encode(event).decode(),
    }
