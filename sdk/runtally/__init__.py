"""Record every step of LLM agent workflows: `Recorder` is the way in, README.md shows it in twenty
lines. `JobWorker` does the work that is asked for over a service entry.

Importing the package imports next to nothing: the functions in Lambda need `runtally.wire` and
`runtally.job` alone, and boto3 is loaded only by a JobWorker, or when the first message leaves for
SQS.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtally.outbox import Unsent
    from runtally.recorder import Recorder, RecordingLost
    from runtally.run import Run, Step
    from runtally.senders import FileSender, Sender, SqsSender
    from runtally.worker import AnswerNotSent, JobFailed, JobWorker, Received

__all__ = [
    "AnswerNotSent",
    "FileSender",
    "JobFailed",
    "JobWorker",
    "Received",
    "Recorder",
    "RecordingLost",
    "Run",
    "Sender",
    "SqsSender",
    "Step",
    "Unsent",
]

_HOMES = {
    "AnswerNotSent": "worker",
    "FileSender": "senders",
    "JobFailed": "worker",
    "JobWorker": "worker",
    "Received": "worker",
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
