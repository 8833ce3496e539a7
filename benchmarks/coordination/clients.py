"""How long calls take: of one client, and of several processes that call at once."""

import multiprocessing
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Final

import valkey

from benchmarks.coordination.operations import Operation, coordinator, pairs

_ROUNDS: Final = 12
_CALLS: Final = {1: 150, 8: 50}
"""A round, of each client, by how many there are."""
_WITHIN_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Timed:
    """Nanoseconds of each call, of all clients; calls a second, of each round."""

    name: str
    calls: list[int]
    rates: list[float]

    def percentile(self, percent: int) -> float:
        """In microseconds, the nearest rank."""
        ranked = sorted(self.calls)
        return ranked[max(0, -(-len(ranked) * percent // 100) - 1)] / 1_000


@dataclass(frozen=True, slots=True)
class Round:
    began: int
    ended: int
    calls: list[int]


type Told = list[tuple[list[Round], list[Round]]]
"""Of one client: for each pair the rounds of ours and of the bare call."""


def timed(url: str, clients: int) -> list[tuple[Timed, Timed]]:
    """Each primitive and what it is compared to, by so many clients at once."""
    run_id = f"run-{secrets.token_hex(4)}"
    with coordinator(url) as opening, opening.open(run_id):
        names, told = _alone(url, run_id) if clients == 1 else _together(url, run_id, clients)
    return [
        (
            _joined(own, [each[number][0] for each in told]),
            _joined(bare, [each[number][1] for each in told]),
        )
        for number, (own, bare) in enumerate(names)
    ]


def _alone(url: str, run_id: str) -> tuple[list[tuple[str, str]], list[Told]]:
    names, told = _work(url, run_id, 0, lambda: None, _CALLS[1])
    return names, [told]


def _together(url: str, run_id: str, clients: int) -> tuple[list[tuple[str, str]], list[Told]]:
    """A process each. They begin every round together."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(clients)
    pipes = [context.Pipe(duplex=False) for _ in range(clients)]
    processes = [
        context.Process(target=_tell, args=(url, run_id, number, barrier, pipe[1]), daemon=True)
        for number, pipe in enumerate(pipes)
    ]
    for process in processes:
        process.start()
    for _, sending in pipes:
        sending.close()  # so that one that dies is the end of its pipe
    answers = [receiving.recv() for receiving, _ in pipes]
    for process in processes:
        process.join()
    return answers[0][0], [told for _, told in answers]


def _tell(url: str, run_id: str, client: int, barrier: Barrier, pipe: Connection) -> None:
    calls = _CALLS[barrier.parties]
    pipe.send(_work(url, run_id, client, lambda: barrier.wait(_WITHIN_S), calls))


def _work(
    url: str, run_id: str, client: int, begin: Callable[[], object], calls: int
) -> tuple[list[tuple[str, str]], Told]:
    """The first round is for connections and scripts, and is left out."""
    with (
        coordinator(url) as joining,
        joining.join(run_id) as state,
        valkey.Valkey.from_url(url) as bare,
    ):
        compared = pairs(state, bare, client)
        told: Told = [([], []) for _ in compared]
        for turn in range(1 + _ROUNDS):
            for (own, other), (of_own, of_other) in zip(compared, told, strict=True):
                for operation, rounds in ((own, of_own), (other, of_other)):
                    measured = _round(operation, begin, calls)
                    if turn:
                        rounds.append(measured)
        return [(own.name, other.name) for own, other in compared], told


def _round(operation: Operation, begin: Callable[[], object], calls: int) -> Round:
    operation.before()
    begin()
    taken: list[int] = []
    work, now = operation.work, time.perf_counter_ns
    began = now()
    for _ in range(calls):
        before = now()
        work()
        taken.append(now() - before)
    return Round(began, now(), taken)


def _joined(name: str, of_clients: list[list[Round]]) -> Timed:
    """perf_counter is the machine's, the same in all of its processes."""
    rates = []
    for at_once in zip(*of_clients, strict=True):
        seconds = max(each.ended for each in at_once) - min(each.began for each in at_once)
        rates.append(sum(len(each.calls) for each in at_once) * 1e9 / seconds)
    calls = [taken for rounds in of_clients for each in rounds for taken in each.calls]
    return Timed(name, calls, rates)
