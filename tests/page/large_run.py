"""A run of 33,000 calls, which the emulator would take minutes to count: the real handlers over a
MemoryStage, their API served as any other."""

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from functions.core.keys import RunRef
from runtally import wire
from tests import build
from tests.api import HttpClient, issue_key
from tests.build import SECOND, T0
from tests.memory_stage import MemoryStage
from tests.wsgi import App, WsgiApp, served

CALLS: Final = 33_000
RUN: Final = RunRef("acme", "nightly-crawl")
_PHASES: Final = ("discover", "fetch", "extract", "judge", "write report")
_LANES: Final = 24


@dataclass(frozen=True)
class LargeRun:
    """The API that has the run, by its address and as its clients see it."""

    api_url: str
    client: HttpClient


@contextmanager
def large_run(around: Callable[[App], App] = lambda app: app) -> Iterator[LargeRun]:
    """`around` is put between the API and its clients."""
    stage = MemoryStage()
    for pack in itertools.batched(_events(), 1_000):
        assert stage.ingest(build.body(*pack, run=RUN)) == []
    stage.drain()
    stage.dynamodb.settle()
    client = HttpClient(stage, issue_key(stage, RUN.tenant_id))
    with served(around(WsgiApp(client))) as api_url:
        yield LargeRun(api_url, client)


def _events() -> Iterator[wire.Event]:
    yield build.started(T0, "nightly-crawl")
    yield from _calls()
    yield build.ended(T0 + 3_000 * SECOND, "failed", error="TooManyFailures: 330 pages")


def _calls() -> Iterator[wire.Step]:
    """24 at a time, five phases after one another, every twentieth the parent of those after it."""
    chance = random.Random(1)  # noqa: S311 - the same run each time
    free = [T0 + SECOND] * _LANES
    parent = ""
    for n in range(CALLS):
        lane = n % _LANES
        start, took = free[lane], int(chance.lognormvariate(14.5 + n % 7 * 0.3, 1.0) * 100)
        free[lane] = start + took + chance.randint(1_000, 3_000_000)
        phase = _PHASES[n * len(_PHASES) // CALLS]
        call = build.step(
            n,
            kind=("model", "tool", "agent")[n % 3],
            status="failed" if n % 100 == 99 else "succeeded",
            name=f"{phase} page {n}",
            phase=phase,
            model="m-large" if n % 2 else "m-small",
            parent_id=parent if n % 20 else None,
            started_at=start,
            ended_at=start + took,
            input_tokens=chance.randint(10, 4_000),
            output_tokens=chance.randint(1, 900),
            cost_usd=f"0.{chance.randint(1, 999_999):09}" if n % 50 else None,
            error="TimeoutError: no answer in 30 s" if n % 100 == 99 else None,
        )
        parent = parent if n % 20 else call.step_id
        yield call
