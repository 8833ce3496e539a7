"""Takes sealed messages to the sender, or to the spool while the sender cannot be reached."""

import logging
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from runtally.cuts import Sealed
from runtally.senders import Delivery, Sender
from runtally.spool import Spool, SpoolFull
from runtally.unobserved import unobserved

_log = logging.getLogger("runtally")

_CHUNK: Final = 10
_CHUNK_BYTES: Final = 4 * 1024 * 1024
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0


class Courier:
    """One thread at a time delivers; `keep` may be called beside it."""

    def __init__(self, sender: Sender, spool: Spool | None) -> None:
        self._sender = sender
        self._spool = spool
        self._failures = 0
        self._down = False
        self._stuck: set[Path] = set()  # tried in this round, in vain
        self._refused = 0
        self.retry_at: float | None = None
        """When (time.monotonic) to try again what failed; None while nothing has."""

    @property
    def limit_bytes(self) -> int | None:
        return self._sender.limit_bytes

    def deliver(self, messages: list[Sealed]) -> list[Sealed]:
        """Send messages, or spool those that cannot be sent; returns what neither worked for."""
        if self._down and self._pausing():
            return self.keep(messages)
        delivery = self._send(messages)
        if delivery.unsent:
            self.back_off()
        return self.keep(delivery.unsent)

    def keep(self, messages: Sequence[Sealed]) -> list[Sealed]:
        """Put messages into the spool; returns those that it has no room for."""
        for index, message in enumerate(messages):
            if self._spool is None:
                return list(messages)
            try:
                self._spool.put(message)
            except (SpoolFull, OSError) as error:
                _log.warning("runtally: the spool takes no message: %s", error)
                return list(messages[index:])
        return []

    def drain_some(self) -> bool:
        """Send the oldest messages of the spool; returns whether there are more to be tried now."""
        if self._pausing():
            return False
        try:
            chunk = self._oldest(self._spool) if self._spool else []
            delivery = self._send([message for _, message in chunk]) if chunk else Delivery()
            self._sort_out(chunk, delivery)
        except OSError as error:
            _log.warning("runtally: the spool cannot be read: %s", error)
            self.back_off()
            return False
        if chunk and not delivery.down:
            return True
        self._end_round(failed=delivery.down or bool(self._stuck))
        return False

    def back_off(self) -> None:
        """Pause, each time about twice as long; at random, so that workers do not return as one."""
        longest = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**self._failures)
        self._failures += 1
        self.retry_at = time.monotonic() + longest * random.uniform(0.5, 1)  # noqa: S311

    def retry_now(self) -> None:
        if self.retry_at is not None:
            self.retry_at = 0.0

    def spooled(self) -> tuple[int, int]:
        """Messages and events in the spool."""
        try:
            return self._spool.counts() if self._spool else (0, 0)
        except OSError as error:
            _log.warning("runtally: the spool cannot be read: %s", error)
            return 0, 0

    def take_refused(self) -> int:
        """How many events the queue refused for good since the last call."""
        refused, self._refused = self._refused, 0
        return refused

    def _pausing(self) -> bool:
        return self.retry_at is not None and time.monotonic() < self.retry_at

    def _send(self, messages: Sequence[Sealed]) -> Delivery:
        try:
            with unobserved():
                delivery = self._sender.send(messages) if messages else Delivery()
        except Exception:  # noqa: BLE001 - a sender may be anyone's; what it was given waits
            _log.exception("runtally: the sender failed")
            delivery = Delivery(unsent=list(messages), down=True)
        self._down = delivery.down
        for message, why in delivery.refused:
            self._refused += message.events
            _log.error("runtally: %d events are lost, refused: %s", message.events, why)
        return delivery

    def _oldest(self, spool: Spool) -> list[tuple[Path, Sealed]]:
        chunk: list[tuple[Path, Sealed]] = []
        size = 0
        for path in spool.waiting():
            if path in self._stuck:
                continue
            message = spool.read(path)
            if message is None:
                continue
            chunk.append((path, message))
            size += len(message.body)
            if len(chunk) == _CHUNK or size >= _CHUNK_BYTES:
                break
        return chunk

    def _sort_out(self, chunk: Sequence[tuple[Path, Sealed]], delivery: Delivery) -> None:
        unsent = {id(message) for message in delivery.unsent}
        for path, message in chunk:
            if id(message) in unsent:
                self._stuck.add(path)
            elif self._spool:
                self._spool.remove(path)

    def _end_round(self, *, failed: bool) -> None:
        """Every message of the spool was tried, or trying more is useless."""
        self._stuck.clear()
        if failed:
            self.back_off()
        else:
            self._failures = 0
            self._down = False
            self.retry_at = None
