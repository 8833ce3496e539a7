"""The rules that every history has: messages are delivered in any way, and time passes."""

import itertools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, precondition, rule

from functions.api.http import Http
from functions.core import keys
from tests.api import Answer, HttpClient, manage_tenants
from tests.build import SECOND
from tests.fakes.calls import client_error
from tests.memory_stage import MemoryStage
from tests.simulation.histories.told import TENANTS, secret_of
from tests.simulation.quiet import Quiet, quiet

RETENTION_DAYS: Final = 30
_RETENTION_S: Final = (RETENTION_DAYS + 8) * 86_400
MINUTE_S: Final = 60
_TIMES: Final = st.sampled_from((0, 0, 0, 30, 30, MINUTE_S, MINUTE_S, 7_200, 7_200, _RETENTION_S))
"""A minute to the second too: the moment at which what holds for a minute ends."""


class Killed(BaseException):
    """The sandbox is gone: no handler may catch this."""


class Fault(NamedTuple):
    """What happens at one of the requests that a delivery makes; `meanwhile`, others act there.

    Of all its requests, or of those `to` one operation alone.
    """

    to: str
    request: int
    when: str
    how: str


_WHEN: Final = st.sampled_from(("before", "after"))
_HOW: Final = st.sampled_from(("error", "kill", "meanwhile"))
_WRITES: Final = st.sampled_from(("s3.put_object", "dynamodb.update_item", "sqs.send_message"))
FAULTS: Final = st.one_of(
    st.none(),
    st.builds(Fault, st.just(""), st.integers(1, 4) | st.integers(1, 12), _WHEN, _HOW),
    st.builds(Fault, _WRITES, st.integers(1, 2), _WHEN, _HOW),
)
"""Most deliveries make few requests, of which the last are those that matter: they have names."""

_READS: Final = st.sampled_from(("dynamodb.get_item", "dynamodb.query"))
MEANWHILE: Final = st.builds(Fault, _READS, st.integers(1, 4), _WHEN, st.just("meanwhile"))
"""What matters of a recount is what it has read by then, and what not."""


@dataclass(eq=False)
class Message:
    """A body on the event queue, and what follows from its being acknowledged."""

    body: str
    acknowledge: Callable[[], None] = lambda: None


class Delivering(RuleBasedStateMachine):
    messages = Bundle("messages")

    def __init__(self) -> None:
        super().__init__()
        self.stage = quiet(MemoryStage(retention_days=RETENTION_DAYS, page_bytes=600))
        self.waiting: dict[Message, None] = {}
        self.expired_before = 0
        """What was made before this time is past its retention."""
        self.expired_are_there = False
        numbers = itertools.count(1)
        self.manage = manage_tenants(self.stage, lambda size: next(numbers).to_bytes(size))
        for tenant_id in TENANTS:
            self.manage.create_tenant(tenant_id)
        self.secrets = {
            tenant_id: self.manage.create_key(tenant_id, secret_of(tenant_id)).secret
            for tenant_id in TENANTS
        }
        self.seconds = 0.0
        self.pace = 0
        self.client = HttpClient(self.stage, "")
        self.client.http = Http(self.stage.api, Quiet(), self._clock)
        self.caught_up: dict[tuple[str, str], Any] = {}

    # -- messages -------------------------------------------------------------------------------

    def queue(self, message: Message) -> Message:
        self.waiting[message] = None
        return message

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), again=st.lists(messages, max_size=2), fault=FAULTS)
    def deliver(self, data: st.DataObject, again: list[Message], fault: Fault | None) -> None:
        """One batch: of messages that wait, and of any that came before."""
        waiting = st.sampled_from(list(self.waiting))
        self.ingest(data.draw(st.lists(waiting, min_size=1, max_size=3)) + again, fault)

    def ingest(self, batch: list[Message], fault: Fault | None = None) -> None:
        failed = self.attempt(fault, lambda: self.stage.ingest(*(one.body for one in batch)))
        for position, message in enumerate(batch):
            if failed is not None and str(position) not in failed:
                self.waiting.pop(message, None)
                message.acknowledge()

    def attempt(
        self,
        fault: Fault | None,
        work: Callable[[], list[str]],
        meanwhile: Callable[[], None] | None = None,
    ) -> list[str] | None:
        """What failed of a delivery; None when its sandbox was killed, and nobody knows."""
        failed = self.under(fault, work, meanwhile)
        assert not failed or (fault and fault.how == "error"), "it failed of itself"
        return failed

    def under[T](
        self,
        fault: Fault | None,
        work: Callable[[], T],
        meanwhile: Callable[[], object] | None = None,
    ) -> T | None:
        """What the work answers; None when its sandbox was killed, and nobody knows."""
        seen = 0

        def meet(call: str, when: str) -> None:
            nonlocal seen
            if fault is None or when != fault.when or not call.startswith(fault.to):
                return
            seen += 1
            if seen != fault.request:
                return
            if fault.how == "kill":
                raise Killed
            if fault.how == "error":
                raise client_error("Request", "InternalServerError")
            (meanwhile or self.go_on)()

        outer, self.stage.calls.hook = self.stage.calls.hook, meet
        try:
            return work()
        except Killed:
            return None
        finally:
            self.stage.calls.hook = outer

    def go_on(self) -> None:
        """What waits is done. In the middle of a delivery too, by another container: then all may
        come again."""
        for message in list(self.waiting):
            self.ingest([message])

    # -- time -----------------------------------------------------------------------------------

    @rule(seconds=_TIMES)
    def wait(self, seconds: int) -> None:
        """Long enough for the index to catch up, or until all that is there has expired."""
        self.stage.now_ns += seconds * SECOND
        if seconds == _RETENTION_S:
            self.expired_before = self.stage.now_ns
            self.expired_are_there = True
        self.index_catches_up()

    def index_catches_up(self) -> None:
        self.stage.dynamodb.settle()
        self.caught_up = dict(self.stage.dynamodb.items)

    @precondition(lambda self: self.expired_are_there)
    @rule()
    def dynamodb_deletes_what_expired(self) -> None:
        for (partition, sort), item in list(self.stage.dynamodb.items.items()):
            if keys.EXPIRES in item and int(item[keys.EXPIRES]["N"]) * SECOND <= self.stage.now_ns:
                self.stage.dynamodb.delete_item(Key={"PK": {"S": partition}, "SK": {"S": sort}})
        self.expired_are_there = False

    # -- readers --------------------------------------------------------------------------------

    def get(
        self, tenant_id: str, path: str, query: Mapping[str, str] | None = None, *, pace: int = 0
    ) -> Answer:
        return self.ask(tenant_id, "GET", path, query=dict(query or {}), pace=pace)

    def ask(
        self, tenant_id: str, method: str, path: str, *, key: str = "", pace: int = 0, **more: Any
    ) -> Answer:
        """I8: whatever is asked, no word of another tenant is in the answer.

        `pace` is how many seconds pass from one look at the clock to the next.
        """
        self.client.key = key or self.secrets[tenant_id]
        self.pace = pace
        answer = self.client.send(method, path, **more)
        for other in TENANTS:
            if other != tenant_id:
                assert secret_of(other).encode() not in answer.body, f"I8: {path}"
        return answer

    def _clock(self) -> float:
        self.seconds += self.pace
        return self.seconds

    # -------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        if sys.exception() is None:  # else a rule has failed: that is what is to be told
            self.go_on()
            self.come_to_rest()

    def come_to_rest(self) -> None:
        """All has gone well at last: what must hold now."""
        assert not self.waiting
