"""What the table's stream tells summarize, and the order of it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from functions.core.keys import RunRef
from functions.core.model import StepRow

_LABEL_BYTES: Final = 6
_SEQUENCE_BYTES: Final = 17
"""Sequence numbers have at most 40 decimal digits:
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_StreamRecord.html"""


@dataclass(frozen=True, slots=True)
class StepStored:
    """A step item appeared. `mark` orders what happened under one partition key, `position` is
    the place in the batch."""

    position: int
    ref: RunRef
    bucket: int
    mark: bytes
    step: StepRow


@dataclass(frozen=True, slots=True)
class RunEnded:
    """RUN carries an end, whichever of its ends it is; a `new` one if it took another's place, or
    none's."""

    position: int
    ref: RunRef
    new: bool = True


type Change = StepStored | RunEnded


def mark(stream_label: str, sequence_number: str) -> bytes:
    """23 bytes that sort as the stream's records do, those of a later stream after all others.

    A label is the time at which its stream was made. A table's stream that was switched off and on
    again numbers anew, so that the number alone would let old marks hide new records.
    Raises ValueError when either is not of its form.
    """
    made = datetime.fromisoformat(stream_label).replace(tzinfo=UTC)
    milliseconds = round(made.timestamp() * 1000)
    number = int(sequence_number)
    return milliseconds.to_bytes(_LABEL_BYTES) + number.to_bytes(_SEQUENCE_BYTES)
