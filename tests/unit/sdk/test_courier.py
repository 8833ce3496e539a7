import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from runtally.courier import Courier
from runtally.cuts import Sealed
from runtally.senders import Delivery
from runtally.spool import Spool
from tests.unit.sdk.recording import KeepingSender

ONE, TWO, THREE = (Sealed(b"%d" % number, number) for number in (1, 2, 3))


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path)


def drain(courier: Courier) -> None:
    while courier.drain_some():
        pass


def test_what_is_accepted_leaves_no_trace(spool: Spool) -> None:
    sender = KeepingSender()
    courier = Courier(sender, spool)
    assert courier.deliver([ONE, TWO]) == []
    assert (sender.bodies, courier.spooled(), courier.retry_at) == ([b"1", b"2"], (0, 0), None)


def test_an_outage_is_spooled_and_sent_in_order_later(spool: Spool) -> None:
    sender = KeepingSender()
    sender.down = True
    courier = Courier(sender, spool)
    assert courier.deliver([ONE]) == []
    assert courier.deliver([TWO, THREE]) == []
    assert sender.attempts == [b"1"]  # the second time it did not even ask
    assert courier.spooled() == (3, 6)
    sender.down = False
    courier.retry_now()
    drain(courier)
    assert (sender.bodies, courier.spooled()) == ([b"1", b"2", b"3"], (0, 0))
    assert courier.retry_at is None


def test_the_next_process_sends_what_the_last_one_left(spool: Spool) -> None:
    spool.put(ONE)
    sender = KeepingSender()
    drain(Courier(sender, Spool(spool.directory)))
    assert (sender.bodies, spool.counts()) == ([b"1"], (0, 0))


def test_pauses_grow_and_end_with_success(spool: Spool) -> None:
    sender = KeepingSender()
    sender.down = True
    courier = Courier(sender, spool)
    pauses = []
    for _ in range(9):
        courier.retry_now()
        courier.deliver([ONE])
        assert courier.retry_at is not None
        pauses.append(courier.retry_at - time.monotonic())
    assert 0.4 < pauses[0] <= 1
    assert all(pause <= 60 for pause in pauses)
    assert pauses[-1] > 25
    sender.down = False
    courier.retry_now()
    drain(courier)
    sender.down = True
    courier.deliver([ONE])
    assert courier.retry_at is not None
    assert courier.retry_at - time.monotonic() <= 1


def test_a_sender_that_raises_counts_as_down(spool: Spool) -> None:
    class Raising(KeepingSender):
        def send(self, messages: Sequence[Sealed]) -> Delivery:
            raise ConnectionError("for the test")

    courier = Courier(Raising(), spool)
    assert courier.deliver([ONE]) == []
    assert courier.spooled() == (1, 1)


def test_without_a_spool_messages_stay_with_the_caller_until_they_are_sent() -> None:
    sender = KeepingSender()
    sender.down = True
    courier = Courier(sender, None)
    assert courier.deliver([ONE]) == [ONE]
    sender.down = False
    courier.retry_now()
    assert courier.deliver([ONE]) == []
    drain(courier)
    assert courier.retry_at is None


@pytest.mark.parametrize("room", [0, 1])
def test_what_a_full_spool_does_not_take_stays_with_the_caller(tmp_path: Path, room: int) -> None:
    sender = KeepingSender()
    sender.down = True
    courier = Courier(sender, Spool(tmp_path, max_bytes=room))
    assert courier.deliver([ONE, TWO]) == [ONE, TWO][room:]


def test_what_the_queue_refuses_for_good_is_counted_and_not_tried_again(spool: Spool) -> None:
    sender = KeepingSender()
    sender.refusing = True
    courier = Courier(sender, spool)
    spool.put(ONE)
    assert courier.deliver([TWO]) == []
    drain(courier)
    assert (courier.spooled(), courier.take_refused(), courier.take_refused()) == ((0, 0), 3, 0)


class Picky(KeepingSender):
    def __init__(self, takes: Callable[[bytes], bool]) -> None:
        super().__init__()
        self._takes = takes

    def send(self, messages: Sequence[Sealed]) -> Delivery:
        self.bodies += [m.body for m in messages if self._takes(m.body)]
        return Delivery(unsent=[m for m in messages if not self._takes(m.body)])


def test_messages_that_are_stuck_hold_up_no_other(spool: Spool) -> None:
    for number in range(40):
        spool.put(Sealed(b"%02d" % number, 1))
    sender = Picky(lambda body: body >= b"25")
    courier = Courier(sender, spool)
    drain(courier)
    assert sender.bodies == [b"%02d" % number for number in range(25, 40)]
    assert courier.spooled() == (25, 25)
    assert courier.retry_at is not None
    assert courier.deliver([Sealed(b"99", 1)]) == []
    assert sender.bodies[-1] == b"99"  # the queue answers, so fresh messages do not wait
