"""Small values, handed from worker to worker."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtally.coordination import Coordinator, TooLong
from runtally.coordination.requests import LONGEST_VALUE
from tests.coordination.server import Server
from tests.coordination.virtual import Network, Place

Process = Callable[[], Coordinator]


def test_what_one_writes_the_others_read(
    place: Place, coordinator: Coordinator, process: Process
) -> None:
    pad = coordinator.open(place.run_id).scratchpad
    theirs = process().join(place.run_id).scratchpad
    assert theirs.get("plan") is None
    version = pad.set("plan", "你好 🎉")
    value = theirs.get("plan")
    assert value is not None
    assert (value.data.decode(), value.version) == ("你好 🎉", version)
    theirs.delete("plan")
    assert pad.get("plan") is None


@given(st.lists(st.binary(max_size=100), max_size=5))
def test_bytes_stay_as_they_are(server: Server, pieces: list[bytes]) -> None:
    pad = Place(server).coordinator().open("bytes").scratchpad
    pad.set("all", b"")
    for piece in pieces:
        pad.append("all", piece)
    value = pad.get("all")
    assert value is not None
    assert value.data == b"".join(pieces)


def test_appends_of_all_workers_are_all_there(
    place: Place, coordinator: Coordinator, process: Process
) -> None:
    pad = coordinator.open(place.run_id).scratchpad
    pads = [process().join(place.run_id).scratchpad for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        lengths = list(
            pool.map(lambda number: pads[number % 8].append("log", f"{number:03}\n"), range(200))
        )
    assert sorted(lengths) == [4 * count for count in range(1, 201)]
    value = pad.get("log")
    assert value is not None
    assert sorted(map(int, value.data.split())) == list(range(200))


def test_compare_and_set_is_won_by_one(
    place: Place, coordinator: Coordinator, process: Process
) -> None:
    pad = coordinator.open(place.run_id).scratchpad
    other = process().join(place.run_id).scratchpad
    first = pad.compare_and_set("leader", "a", version=None)
    assert first is not None
    assert other.compare_and_set("leader", "b", version=None) is None
    second = other.compare_and_set("leader", "b", version=first)
    assert second is not None
    assert pad.compare_and_set("leader", "a", version=first) is None
    # The same bytes written again are another version: what was there in between is not missed.
    pad.set("leader", "b")
    assert other.compare_and_set("leader", "c", version=second) is None


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_whatever_gets_lost_each_write_is_done_once(place: Place, lost: str) -> None:
    network = Network()
    pad = place.coordinator(network).open(place.run_id).scratchpad
    network.lose(lost, lost)  # type: ignore[arg-type]
    assert pad.append("log", "one ") == 4
    network.lose(lost)  # type: ignore[arg-type]
    assert pad.append("log", "two") == 7
    network.lose(lost, lost)  # type: ignore[arg-type]
    version = pad.compare_and_set("leader", "a", version=None)
    assert version is not None
    value = pad.get("leader")
    assert value is not None
    assert value.version == version


def test_a_late_write_does_not_come_back(place: Place) -> None:
    network = Network()
    pad = place.coordinator(network).open(place.run_id).scratchpad
    network.lose("request")
    pad.set("plan", "old")
    pad.set("plan", "new")
    with place.server.client() as client:
        client.execute_command(*network.late[0])
    value = pad.get("plan")
    assert value is not None
    assert value.data == b"new"


def test_what_is_too_long_is_refused_and_changes_nothing(
    place: Place, coordinator: Coordinator
) -> None:
    pad = coordinator.open(place.run_id).scratchpad
    version = pad.set("big", "你" * (LONGEST_VALUE // 3))
    with pytest.raises(TooLong, match=f"'big' would have {LONGEST_VALUE + 2} bytes"):
        pad.append("big", "你")
    with pytest.raises(TooLong):
        pad.set("big", b"x" * (LONGEST_VALUE + 1))
    value = pad.get("big")
    assert value is not None
    assert value.version == version
