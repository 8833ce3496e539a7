"""What the fakes of AWS share: errors as botocore raises them, and a hook on every call."""

import threading
from collections.abc import Callable
from typing import Any, Final, Literal

from botocore.exceptions import ClientError

type Hook = Callable[[str, Literal["before", "after"]], None]
"""Called around each request with `service.operation`; may raise, to fail or to kill there."""

_STATUS: Final = {
    "404": 404,
    "InternalServerError": 500,
    "SlowDown": 503,
    "ServiceUnavailable": 503,
    "PreconditionFailed": 412,
    "ConditionalRequestConflict": 409,
}


def client_error(operation: str, code: str, message: str = "", **more: Any) -> ClientError:
    response: Any = {
        "Error": {"Code": code, "Message": message or code},
        "ResponseMetadata": {"HTTPStatusCode": _STATUS.get(code, 400)},
    }
    return ClientError(response | more, operation)


class Calls:
    """Counts and announces requests, which are applied one after the other, whatever the thread.
    `hook` is asked before a request is applied and after."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.hook: Hook = lambda call, when: None
        self._one = threading.RLock()

    def __call__[T](self, call: str, apply: Callable[[], T]) -> T:
        self.made.append(call)
        self.hook(call, "before")
        try:
            with self._one:
                return apply()
        finally:
            self.hook(call, "after")  # a refusal too is an answer that may be lost
