"""Says in the background that this process is alive, for all that it holds in a run."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

_log = logging.getLogger("runtally")


class Keeper:
    """A task that beats for as long as `beat` says that there is something to say."""

    def __init__(
        self, beat: Callable[[], Awaitable[bool]], interval_s: Callable[[], float]
    ) -> None:
        self._beat = beat
        self._interval_s = interval_s
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        heard = True
        while True:
            await asyncio.sleep(self._interval_s())
            try:
                if not await self._beat():
                    return
            except Exception as error:  # noqa: BLE001 - whatever it is, the next beat may be heard
                # Whoever holds something learns it from `check`, in time.
                if heard:
                    _log.warning("runtally: heartbeats go unheard: %s", error)
                heard = False
            else:
                heard = True
