"""Record every step of LLM agent workflows: `Recorder` is the way in, README.md shows it in twenty
lines.

Importing the package imports next to nothing: the functions in Lambda need `runtally.wire` alone,
and boto3 is loaded only when the first message leaves for SQS.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtally.outbox import Unsent
    from runtally.recorder import Recorder, RecordingLost
    from runtally.run import Run, Step
    from runtally.senders import FileSender, Sender, SqsSender

__all__ = [
    "FileSender",
    "Recorder",
    "RecordingLost",
    "Run",
    "Sender",
    "SqsSender",
    "Step",
    "Unsent",
]

_HOMES = {
    "FileSender": "senders",
    "Recorder": "recorder",
    "RecordingLost": "recorder",
    "Run": "run",
    "Sender": "senders",
    "SqsSender": "senders",
    "Step": "run",
    "Unsent": "outbox",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
