"""The way in: what the workers of one run share while it lasts."""

import logging
import os
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, TypeVar
from weakref import WeakSet

import msgspec

from runtally import environment, wire
from runtally.coordination import requests
from runtally.coordination.aio.budget import Budget
from runtally.coordination.aio.clock import Clock
from runtally.coordination.aio.connection import Client, Connection
from runtally.coordination.aio.keeper import Keeper
from runtally.coordination.aio.scratchpad import Scratchpad
from runtally.coordination.aio.slots import Lease, Semaphore, Slot
from runtally.coordination.errors import Cancelled, CoordinationError, StateLost, Unavailable
from runtally.coordination.holds import BEATS_A_TTL

if TYPE_CHECKING:
    from typing_extensions import Self

    from runtally.coordination.iam import ElastiCacheIam

_log = logging.getLogger("runtally")

Fallback = Literal["raise", "proceed"]
_ASK_AGAIN_S: Final = 5.0
"""Whoever proceeds without an answer does not wait for the next one either."""
_HELD_AT_ONCE: Final = 500
"""Of the slots that one request renews: a script takes so many arguments, and no more."""
_TTL_S: Final = (1.0, 300.0)
_KEEP_S: Final = (60.0, 7 * 86_400.0)
T = TypeVar("T")


class Coordinator:
    """Opens and joins runs of one tenant on a Valkey server; one a process, which it outlives.

    Pass a `url` (`valkeys://host:6379` is TLS), with `iam` for ElastiCache, or a `client` of your
    own, such as a ValkeyCluster; its requests may be repeated. A worker that is not heard of for
    `ttl_s` seconds loses what it held; a run that nobody asks for anything is forgotten after
    `keep_s`. An answer is waited for `timeout_s`, three times at most.

    Where the server cannot be asked, or has lost the run's state, `fallback` decides: `raise` gives
    the error to the caller; `proceed` lets budgets, semaphores, heartbeats and questions for a
    cancellation through, unguarded and with a warning. Leases and scratchpad always raise.
    Raises ValueError for settings that cannot work.
    """

    def __init__(  # noqa: PLR0913 - one keyword a setting
        self,
        *,
        tenant_id: str,
        url: str | None = None,
        client: Client | None = None,
        iam: "ElastiCacheIam | None" = None,
        ttl_s: float = 30.0,
        keep_s: float = 86_400.0,
        timeout_s: float = 1.0,
        fallback: Fallback = "raise",
        background: bool = True,
        clock: Clock | None = None,
    ) -> None:
        if (url is None) == (client is None):
            raise ValueError("a Coordinator needs either url or client")
        for name, value, (least, most) in (("ttl_s", ttl_s, _TTL_S), ("keep_s", keep_s, _KEEP_S)):
            if not least <= value <= most:
                raise ValueError(f"{name} is {value}: it is {least} to {most}")
        if fallback not in ("raise", "proceed"):
            raise ValueError(f"fallback is {fallback!r}: it is raise or proceed")
        self._tenant_id = _checked("tenant_id", tenant_id, wire.TenantId)
        if client is None:
            assert url is not None  # noqa: S101 - for the type checker: one of the two was given
            self._connection = Connection.to(url, timeout_s, iam)
        else:
            self._connection = Connection(client)
        self._ttl_s = ttl_s
        self._keep_s = keep_s
        self._fallback: Fallback = fallback
        self._background = background
        self._clock = clock or Clock()
        self._states: WeakSet[RunState] = WeakSet()

    @classmethod
    def from_environment(cls, *, fallback: Fallback = "raise") -> "Self":
        """Settings from RUNTALLY_TENANT_ID and RUNTALLY_VALKEY_URL; with RUNTALLY_VALKEY_USER and
        RUNTALLY_VALKEY_CACHE it signs in by IAM. Raises ValueError that names what is missing."""
        tenant_id, url = environment.required("RUNTALLY_TENANT_ID", "RUNTALLY_VALKEY_URL")
        user = environment.optional("RUNTALLY_VALKEY_USER")
        if user is None:
            return cls(tenant_id=tenant_id, url=url, fallback=fallback)
        from runtally.coordination.iam import ElastiCacheIam  # noqa: PLC0415 - where it is wanted

        (cache,) = environment.required("RUNTALLY_VALKEY_CACHE")
        return cls(tenant_id=tenant_id, url=url, iam=ElastiCacheIam(user, cache), fallback=fallback)

    async def open(self, run_id: str) -> "RunState":
        """Begin to share, or join what is there; for the one that starts the run, and for it alone.

        A worker that comes later, or again, calls `join`: it must not begin anew what vanished.
        Raises Unavailable.
        """
        return await self._entered("open", run_id)

    async def join(self, run_id: str) -> "RunState":
        """Share in what was opened. Raises StateLost when nothing is open, and Unavailable."""
        return await self._entered("join", run_id)

    async def reopen(
        self,
        run_id: str,
        *,
        spent: Mapping[str, int],
        fence: int = 0,
        ttl_s: float | None = None,
    ) -> "RunState":
        """Begin anew after StateLost, with what each budget had spent by then, in its units.

        Waits first, until whoever held a slot knows that it is lost: for `ttl_s` as it was where
        the run was opened, which is this Coordinator's unless said otherwise. Workers that had
        joined before join again. Where another has reopened it meanwhile, its figures count.
        Fencing numbers go on by the server's clock; where that may have been set back, all to come
        are above `fence`.
        """
        requests.units_of("fence", fence, requests.HIGHEST_FENCE)
        for name, units in spent.items():
            requests.units_of(f"spent of {requests.name_of('budget', name)}", units)
        await self._clock.sleep(self._ttl_s if ttl_s is None else ttl_s)
        return await self._entered("reopen", run_id, spent, fence)

    async def close(self) -> None:
        """End the heartbeats of its runs, and the connections."""
        for state in list(self._states):
            await state.close()
        await self._connection.close()

    async def __aenter__(self) -> "Self":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def _entered(
        self, how: str, run_id: str, spent: Mapping[str, int] | None = None, fence: int = 0
    ) -> "RunState":
        key = requests.key_of(self._tenant_id, _checked("run_id", run_id, wire.RunId))
        state = RunState(
            self._connection,
            key,
            requests.opening("join", self._ttl_s, self._keep_s, {}, 0),
            ttl_s=self._ttl_s,
            fallback=self._fallback,
            background=self._background,
            clock=self._clock,
        )
        self._states.add(state)
        try:
            await state.enter(requests.opening(how, self._ttl_s, self._keep_s, spent or {}, fence))
        except CoordinationError as error:
            # From here on it is only joined: what was begun, and vanished, must not begin anew.
            state.unguarded(error)
        return state


class RunState:
    """What the workers of one run share. All of it is under one key and one time to live."""

    def __init__(  # noqa: PLR0913 - made by a Coordinator
        self,
        connection: Connection,
        key: str,
        joining: tuple[str | bytes, ...],
        *,
        ttl_s: float,
        fallback: Fallback,
        background: bool,
        clock: Clock,
    ) -> None:
        self._connection = connection
        self._key = key
        self._joining = joining
        self._session: requests.Session | None = None
        self._ttl_s = ttl_s
        self._fallback = fallback
        self.clock = clock
        self._is_unguarded = False
        self._ask_again_at = float("-inf")
        self._worker: str | None = None
        self._held: dict[str, Slot] = {}
        self._pid = os.getpid()
        self._keeper = Keeper(self.beat, self._interval_s) if background else None

    @property
    def ttl_s(self) -> float:
        """As whoever opened the run has it, who may have another setting."""
        return self._session.ttl_s if self._session else self._ttl_s

    @property
    def scratchpad(self) -> Scratchpad:
        return Scratchpad(self)

    def lease(self, name: str, *, wait_s: float = 0.0) -> Lease:
        """For `with`: one holder at a time. Raises Busy when it is held for `wait_s` longer."""
        return Lease(self, requests.name_of("lease", name), 1, wait_s)

    def semaphore(self, name: str, size: int) -> Semaphore:
        """At most `size` at a time, which is 1 to 1,000 and the same for all workers."""
        requests.units_of("size", size, requests.MOST_SLOTS, least=1)
        return Semaphore(self, requests.name_of("semaphore", name), size)

    def budget(self, name: str, limit: int) -> Budget:
        """Whole units, such as nano-dollars or tokens, up to a limit that is the same for all
        workers and at most 2^53 - 1."""
        requests.units_of("limit", limit)
        return Budget(self, requests.name_of("budget", name), limit)

    async def cancel(self, reason: str) -> None:
        """Ask all workers of the run to stop; the first reason stays."""
        await self.ask(requests.cancel(reason))

    async def cancelled(self) -> str | None:
        """The reason, or None, as the server has it now."""
        try:
            await self.ask(requests.nothing())
        except CoordinationError as error:
            self.unguarded(error)
        return self._session.cancel_reason if self._session else None

    def raise_if_cancelled(self) -> None:
        """Raises Cancelled when any answer since has told of it: no request, and with a heartbeat
        or a slot at most `ttl_s / 6` seconds late."""
        if self._session and self._session.cancel_reason is not None:
            raise Cancelled(self._session.cancel_reason)

    async def heartbeat(self, worker: str) -> None:
        """Say that this worker is alive, now and in the background until `close`."""
        self._mind_fork()
        self._worker = requests.name_of("worker", worker)
        try:
            await self.beat()
        except CoordinationError as error:
            self.unguarded(error)
        if self._keeper:
            self._keeper.wake()

    async def workers(self) -> dict[str, float]:
        """Seconds since each worker was last heard of, by the server's clock."""
        return await self.ask(requests.workers())

    async def beat(self) -> bool:
        """Renew all that this process holds in the run, which the background does too; whether
        there is anything to keep alive."""
        self._mind_fork()
        held = list(self._held.values())
        if not held and self._worker is None:
            return False
        for first in range(0, max(1, len(held)), _HELD_AT_ONCE):
            await self._renew(held[first : first + _HELD_AT_ONCE])
        return True

    async def _renew(self, held: list[Slot]) -> None:
        asked_at = self.clock.monotonic()
        try:
            beat = requests.beat(self._worker, [slot.place for slot in held])
            lost = await self.ask(beat, anyway=True)
        except StateLost:
            for slot in held:
                self.let_go(slot)
            raise
        for slot in held:
            if slot.token in lost:
                self.let_go(slot)
            else:
                slot.renewed(asked_at, self.ttl_s)

    async def close(self) -> None:
        """End the heartbeat. What is still held lapses."""
        if self._keeper:
            await self._keeper.stop()

    async def __aenter__(self) -> "Self":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    # For the primitives.

    async def enter(self, opening: tuple[str | bytes, ...]) -> requests.Session:
        self._session = requests.opened(await self._answer(opening))
        return self._session

    async def ask(self, request: requests.Request[T], *, anyway: bool = False) -> T:
        """`anyway`: also right after the server did not answer, since it keeps or frees a slot."""
        self._mind_fork()
        session = self._session or await self.enter(self._joining)
        with session.call(request) as call:
            answer = await self._answer(call.arguments, anyway=anyway)
            result = session.result(request, call, answer)
        self._is_unguarded = False
        return result

    def keep(self, slot: Slot) -> None:
        """Renew it from now on."""
        self._held[slot.token] = slot
        if self._keeper:
            self._keeper.wake()

    def let_go(self, slot: Slot) -> None:
        slot.ended()
        self._held.pop(slot.token, None)

    def unguarded(self, error: CoordinationError) -> None:
        """Raises the error unless the fallback is to proceed, of which it warns once an outage."""
        if self._fallback == "raise" or not isinstance(error, Unavailable | StateLost):
            raise error
        if not self._is_unguarded:
            _log.warning("runtally: goes on without coordination: %s", error)
        self._is_unguarded = True

    async def _answer(
        self, arguments: tuple[str | bytes, ...], *, anyway: bool = False
    ) -> list[bytes]:
        if not anyway and self.clock.monotonic() < self._ask_again_at:
            raise Unavailable(f"Valkey is not asked for {_ASK_AGAIN_S} s after it did not answer")
        try:
            answer = await self._connection.run(self._key, arguments)
        except Unavailable:
            if self._fallback == "proceed":
                self._ask_again_at = self.clock.monotonic() + _ASK_AGAIN_S
            raise
        self._ask_again_at = float("-inf")
        return answer

    def _interval_s(self) -> float:
        return self.ttl_s / BEATS_A_TTL

    def _mind_fork(self) -> None:
        """What the parent holds is not the child's, and its lanes even less."""
        if self._pid == os.getpid():
            return
        self._pid = os.getpid()
        self._held, self._worker = {}, None
        self._keeper = Keeper(self.beat, self._interval_s) if self._keeper else None
        if self._session:
            self._session.forked()


def _checked(name: str, value: str, kind: object) -> str:
    try:
        return str(msgspec.convert(value, kind))
    except msgspec.ValidationError as error:
        raise ValueError(f"{name} {value!r}: {error}") from None
