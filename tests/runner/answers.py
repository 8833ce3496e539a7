"""What a handler's answer means: which of the batch failed, as Lambda reads it."""

from collections.abc import Callable, Sequence
from typing import Any

type Handler = Callable[[dict[str, Any]], Any]


def failed_ids(handler: Handler, records: Sequence[dict[str, Any]], ids: Sequence[str]) -> set[str]:
    """The ids of the records that failed; all of them when the handler raises, and when the answer
    names an id that is not in the batch, or none at all where one is due."""
    try:
        answer = handler({"Records": list(records)})
    except Exception:  # noqa: BLE001 - whatever a function raises fails its invocation
        return set(ids)
    named = [one.get("itemIdentifier") for one in (answer or {}).get("batchItemFailures") or []]
    if any(not name or name not in ids for name in named):
        return set(ids)
    return set(named)
