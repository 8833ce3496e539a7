import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtally import cuts, wire
from runtally.cuts import Cut, Packer

A = wire.Head(1, "acme", "a")
B = wire.Head(1, "acme", "b", 8)


def line(size: int, text: str = "x", at: int = 1) -> bytes:
    return wire.encode_event(wire.RunLog("1795984949123456789-9f3a1c02", at, [text * size]))


def test_a_message_is_cut_at_a_hundred_events() -> None:
    packer = Packer()
    made = [cut for _ in range(250) for cut in packer.add(A, line(1), 0)]
    assert [len(cut.lines) for cut in made] == [100, 100]
    assert [len(cut.lines) for cut in packer.take_all()] == [50]


@pytest.mark.parametrize("seconds", [cuts.AFTER_S, 2.5])
def test_a_message_is_cut_so_many_seconds_after_its_first_event(seconds: float) -> None:
    packer = Packer(seconds)
    packer.add(A, line(1), 10.0)
    packer.add(B, line(1), 12.0)
    packer.add(A, line(1), 9.9 + seconds)
    assert packer.next_due() == 10.0 + seconds
    assert packer.take_due(9.999 + seconds) == []
    assert [(cut.head, len(cut.lines)) for cut in packer.take_due(10.0 + seconds)] == [(A, 2)]
    assert packer.next_due() == 12.0 + seconds


def test_what_goes_at_once_takes_along_what_waited() -> None:
    packer = Packer()
    first, last = line(1, "first"), line(1, "last")
    assert packer.add(A, first, 0) == []
    assert packer.add(A, last, 1, at_once=True) == [Cut(A, [first, last])]
    assert packer.next_due() is None


def test_an_event_larger_than_a_message_goes_alone() -> None:
    packer = Packer()
    small, large = line(1), line(cuts.AT_BYTES)
    packer.add(A, small, 0)
    assert packer.add(A, large, 0) == [Cut(A, [small]), Cut(A, [large])]


@pytest.mark.parametrize("text", ["x", "日", "\ufffe", "\uffff", '"', "\x01"])
def test_sizes_are_those_of_the_sealed_body(text: str) -> None:
    lines = [line(n, text) for n in (1, 10, 100)]
    expected = cuts.head_size(B) + sum(map(cuts.sealed_size, lines)) - 1  # commas only between
    assert len(Cut(B, lines).seal().body) == expected


events = st.tuples(
    st.sampled_from([A, B]),
    st.integers(0, 90_000),
    st.sampled_from(["x", "日", "\uffff"]),
    st.floats(0, 3),
    st.booleans(),
)


@given(st.lists(events, max_size=40))
def test_any_mix_of_events_is_cut_within_the_limits_and_keeps_its_order(
    mix: list[tuple[wire.Head, int, str, float, bool]],
) -> None:
    packer = Packer()
    now = 0.0
    sent: list[Cut] = []
    given_: dict[wire.Head, list[bytes]] = {A: [], B: []}
    for number, (head, size, text, pause, at_once) in enumerate(mix):
        now += pause
        sent += packer.take_due(now)
        given_[head].append(line(size, text, number))
        sent += packer.add(head, given_[head][-1], now, at_once=at_once)
        assert not at_once or sent[-1].lines[-1] == given_[head][-1]
        due = packer.next_due()
        assert due is None or now < due <= now + cuts.AFTER_S
    sent += packer.take_all()
    for head, lines in given_.items():
        assert [one for cut in sent if cut.head == head for one in cut.lines] == lines
    for cut in sent:
        check_sealed(cut)


def check_sealed(cut: Cut) -> None:
    sealed = cut.seal()
    assert len(cut.lines) == 1 or len(sealed.body) <= cuts.AT_BYTES
    assert 1 <= sealed.events <= cuts.AT_EVENTS
    assert cut.seal() == sealed
    opened = wire.open_message(sealed.body.decode())
    assert opened.head == cut.head
    assert list(map(json.loads, opened.lines)) == list(map(json.loads, cut.lines))
