"""Units spent together: exactly, and never beyond the limit."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from runtally.coordination import (
    BudgetExceeded,
    CoordinationError,
    Coordinator,
    LimitsDiffer,
    Unavailable,
)
from runtally.coordination.requests import MOST
from tests.coordination.virtual import Network, Place


def test_what_would_exceed_the_limit_is_refused_and_not_counted(
    place: Place, coordinator: Coordinator
) -> None:
    budget = coordinator.open(place.run_id).budget("cost", 100)
    assert budget.spend(70) == 30
    with pytest.raises(BudgetExceeded, match="31 units are asked for, 30 are left") as refused:
        budget.spend(31)
    assert (refused.value.units, refused.value.left) == (31, 30)
    assert budget.spend(30) == 0
    assert (budget.spent(), budget.left()) == (100, 0)
    assert budget.spend(0) == 0


def test_all_workers_spend_the_same_budget(
    place: Place, coordinator: Coordinator, process: Callable[[], Coordinator]
) -> None:
    coordinator.open(place.run_id)
    budgets = [process().join(place.run_id).budget("cost", 1_000) for _ in range(8)]

    def spend_all(number: int) -> int:
        spent = 0
        while True:
            try:
                budgets[number].spend(7)
            except BudgetExceeded:
                return spent
            spent += 7

    with ThreadPoolExecutor(8) as pool:
        spent = list(pool.map(spend_all, range(8)))
    assert sum(spent) == budgets[0].spent() == 994


def test_units_are_whole_up_to_the_largest_limit(place: Place, coordinator: Coordinator) -> None:
    budget = coordinator.open(place.run_id).budget("cost", MOST)
    assert budget.spend(MOST - 2) == 2
    assert budget.spend(1) == 1
    with pytest.raises(BudgetExceeded):
        budget.spend(2)
    with pytest.raises(BudgetExceeded):
        budget.spend(MOST)
    assert budget.spent() == MOST - 1


@pytest.mark.parametrize("units", [-1, MOST + 1])
def test_units_out_of_range_are_refused(place: Place, coordinator: Coordinator, units: int) -> None:
    budget = coordinator.open(place.run_id).budget("cost", 10)
    with pytest.raises(ValueError, match=f"units is {units}: it is 0 to {MOST}"):
        budget.spend(units)


@pytest.mark.parametrize("units", [1.5, True, "3", None])
def test_only_whole_numbers_are_units(
    place: Place, coordinator: Coordinator, units: object
) -> None:
    budget = coordinator.open(place.run_id).budget("cost", 10)
    with pytest.raises(TypeError, match="whole units only, an int"):
        budget.spend(units)  # type: ignore[arg-type]


def test_workers_agree_on_the_limit(place: Place, coordinator: Coordinator) -> None:
    state = coordinator.open(place.run_id)
    state.budget("cost", 10).spend(1)
    differs = "'cost' has the limit 10 in this run, not 11"
    with pytest.raises(LimitsDiffer, match=differs):
        state.budget("cost", 11).spend(1)
    with pytest.raises(LimitsDiffer, match=differs):
        state.budget("cost", 11).spent()
    assert state.budget("tokens", 11).spend(1) == 10


def test_a_reservation_counts_in_full_until_it_is_settled(
    place: Place, coordinator: Coordinator
) -> None:
    budget = coordinator.open(place.run_id).budget("cost", 100)
    reservation = budget.reserve(60)
    with pytest.raises(BudgetExceeded):
        budget.reserve(41)
    reservation.settle(25)
    reservation.settle(0)  # only the first counts
    assert budget.spent() == 25
    with pytest.raises(BudgetExceeded):
        budget.reserve(76)
    with budget.reserve(75) as reservation:
        pass  # a worker that died, or did not know what it cost
    assert budget.left() == 0


def test_no_more_is_settled_than_was_reserved(place: Place, coordinator: Coordinator) -> None:
    budget = coordinator.open(place.run_id).budget("cost", 100)
    reservation = budget.reserve(60)
    with pytest.raises(ValueError, match="61 units were used of the budget 'cost', 60 were"):
        reservation.settle(61)
    assert budget.spent() == 60


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_a_spend_is_counted_once_whatever_gets_lost(place: Place, lost: str) -> None:
    network = Network()
    state = place.coordinator(network).open(place.run_id)
    budget = state.budget("cost", 100)
    network.lose(lost, "answer")  # type: ignore[arg-type]
    assert budget.spend(10) == 90
    network.lose(lost, "answer")  # type: ignore[arg-type]
    reservation = budget.reserve(20)
    network.lose(lost, "answer")  # type: ignore[arg-type]
    reservation.settle(5)
    assert budget.spent() == 15


def test_a_refusal_stays_one_when_its_answer_gets_lost(place: Place) -> None:
    network = Network()
    state = place.coordinator(network).open(place.run_id)
    budget = state.budget("cost", 100)
    reservation = budget.reserve(100)
    network.lose("answer")
    with pytest.raises(BudgetExceeded):
        budget.spend(1)
    reservation.settle(0)
    assert budget.spent() == 0


def test_what_arrives_late_does_nothing_once_it_was_answered(place: Place) -> None:
    """A request that was given up waits in a proxy, or in the buffers of a server that stood."""
    network = Network()
    state = place.coordinator(network).open(place.run_id)
    budget = state.budget("cost", 100)
    network.lose("request")
    assert budget.spend(10) == 90
    assert budget.spend(1) == 89
    (late,) = network.late
    with place.server.client() as client:
        assert client.execute_command(*late) == [b"lost", b"overtaken"]
    assert budget.spent() == 11


def test_a_spend_without_an_answer_is_an_error_and_may_have_been_counted(place: Place) -> None:
    network = Network()
    state = place.coordinator(network).open(place.run_id)
    budget = state.budget("cost", 100)
    network.lose("answer", "all")
    with pytest.raises(Unavailable, match="Valkey does not answer"):
        budget.spend(10)
    network.heal()
    assert budget.spent() == 10
    assert isinstance(Unavailable(), CoordinationError)
