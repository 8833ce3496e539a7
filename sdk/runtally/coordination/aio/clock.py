"""Time, as the process has it."""

import asyncio
import time


class Clock:
    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Without holding up the others of the event loop."""
        await asyncio.sleep(seconds)
