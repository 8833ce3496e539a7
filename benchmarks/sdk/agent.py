"""An agent that records, and the SQS that it sends to."""

import time
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from botocore.exceptions import EndpointConnectionError

from runtally import Recorder
from runtally.run import Run
from runtally.senders import SqsSender

type State = Literal["well", "slow", "down", "refusing"]

SLOW_S: Final = 2.0
_URL: Final = "https://sqs.us-east-1.amazonaws.com/1/runtally"
_TEXT: Final = "Read the failing test in tests/test_api.py, then change one thing: 3 of 17 pass.\n"


class _Body(msgspec.Struct):
    events: list[msgspec.Raw]


class Queue:
    """boto3's client of SQS, as far as the recorder uses it, in one of these states."""

    def __init__(self, state: State = "well") -> None:
        self.state = state
        self._events: dict[str, int] = {}

    @property
    def arrived(self) -> int:
        """Events, those of a body that came twice once."""
        return sum(self._events.values())

    def send_message_batch(self, **request: Any) -> dict[str, Any]:
        entries = request["Entries"]
        if self.state == "down":
            raise EndpointConnectionError(endpoint_url=_URL)
        if self.state == "refusing":
            code = {"Code": "AccessDenied", "SenderFault": True}
            return {"Failed": [{"Id": entry["Id"], **code} for entry in entries]}
        if self.state == "slow":
            time.sleep(SLOW_S)
        for body in (entry["MessageBody"] for entry in entries):
            self._events[body[:256]] = len(msgspec.json.decode(body, type=_Body).events)
        return {}

    def close(self) -> None:
        """There are no connections."""


def recorder(queue: Any, spool: Path | None = None) -> Recorder:
    if spool is not None:
        return Recorder(tenant_id="acme", queue_url=_URL, sqs=queue, spool_dir=spool)
    return Recorder(tenant_id="acme", sender=SqsSender(_URL, sqs=queue))


def payload_of(size: int) -> dict[str, Any] | None:
    """What a model is asked, about so many bytes of it; None for none."""
    if not size:
        return None
    turns = [{"role": "user", "content": _TEXT} for _ in range(size // len(_TEXT))]
    return {"model": "gpt-5-mini", "messages": turns, "temperature": 0.2}


def record_steps(run: Run, steps: int, payload: object) -> None:
    """Model calls as an agent records them."""
    for number in range(steps):
        with run.step("chat", phase="act", agent="coder", kind="model") as step:
            step.set(
                model="gpt-5-mini",
                provider="openai",
                input_tokens=1_200 + number,
                output_tokens=300,
                cost_usd="0.00125",
                attributes={"temperature": 0.2},
            )
            if payload is not None:
                step.set(payload=payload)
