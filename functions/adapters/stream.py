"""Records of the table's stream, as Lambda delivers them, read into what they mean."""

from typing import Any

from functions.adapters.attributes import from_attributes
from functions.core import items, keys
from functions.core.changes import Change, RunEnded, StepStored, mark
from functions.core.keys import RunRef


class BadRecord(ValueError):  # noqa: N818 - the fact
    """A record that cannot be read, with the key it is about."""


def change_of(position: int, record: dict[str, Any]) -> Change:
    """What a record says that passed the event source's filter. Raises BadRecord."""
    try:
        key = from_attributes(record["dynamodb"]["Keys"])
        ref, bucket = keys.parse_run_partition(key[keys.PARTITION])
        if key[keys.SORT] == keys.RUN:
            return RunEnded(position, ref, new=_end_in(record, "New") != _end_in(record, "Old"))
        label = record["eventSourceARN"].rpartition("/")[2]
        image = from_attributes(record["dynamodb"]["NewImage"])
        return StepStored(
            position, ref, bucket, mark(label, sequence_number(record)), items.step_row(image)
        )
    except (KeyError, ValueError, TypeError, ArithmeticError, OverflowError) as error:
        where = record.get("dynamodb", {}).get("Keys")
        # Its words would quote what stands there.
        raise BadRecord(f"{where}: {type(error).__name__}") from error


def run_of(record: dict[str, Any]) -> RunRef:
    """Whose item it is about. Raises BadRecord."""
    try:
        key = from_attributes(record["dynamodb"]["Keys"])
        ref, _ = keys.parse_run_partition(key[keys.PARTITION])
    except (KeyError, ValueError, TypeError) as error:
        where = record.get("dynamodb", {}).get("Keys")
        raise BadRecord(f"{where}: {type(error).__name__}") from error
    return ref


def _end_in(record: dict[str, Any], which: str) -> object:
    return record["dynamodb"].get(f"{which}Image", {}).get("end")


def sequence_number(record: dict[str, Any]) -> str:
    number: str = record["dynamodb"]["SequenceNumber"]
    return number
