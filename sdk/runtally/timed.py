"""What runs and steps share: when they started, when and how they ended."""

import asyncio
import concurrent.futures
import contextlib
import time
from abc import ABC, abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING, Final

from runtally import wire

if TYPE_CHECKING:
    from typing_extensions import Self

_CANCELLED: Final = (
    asyncio.CancelledError,
    concurrent.futures.CancelledError,
    KeyboardInterrupt,
    SystemExit,
    GeneratorExit,
)


class Timed(ABC):
    """A context manager, plain and async, around work whose exceptions it records and passes on."""

    def __init__(self) -> None:
        self._status: wire.Status = "succeeded"
        self._error: str | None = None
        self._started_at = 0
        self._started = 0
        self._ended = False

    def fail(self, error: str) -> None:
        """Record a failure that raised nothing."""
        self._status, self._error = "failed", error

    def start(self) -> None:
        self._started_at = time.time_ns()
        self._started = time.monotonic_ns()

    def end(self, error: BaseException | None = None) -> None:
        """Record the end, once; an exception decides the status and gives the error text."""
        if self._ended:
            return
        self._ended = True
        if not self._started:
            self.start()
        if error is not None:
            self._status = "cancelled" if isinstance(error, _CANCELLED) else "failed"
            self._error = _error_text(error)
        self._record_end()

    @abstractmethod
    def _record_end(self) -> None: ...

    @property
    def _ended_at(self) -> int:
        # By the clock that is never set back, so that nothing lasts less than nothing.
        return self._started_at + time.monotonic_ns() - self._started

    @abstractmethod
    def _may_block(self) -> bool:
        """Whether recording the end may have to wait for room."""

    def __enter__(self) -> "Self":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end(error)

    async def __aenter__(self) -> "Self":
        self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._may_block():  # an outage that filled memory must not stop the event loop as well
            with contextlib.suppress(RuntimeError):  # a loop that is not asyncio's
                await asyncio.get_running_loop().run_in_executor(None, self.end, error)
        self.end(error)


def _error_text(error: BaseException) -> str:
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - an exception whose own text fails is still one
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
