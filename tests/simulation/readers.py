"""Somebody who reads while it happens: lists that lag, runs page by page."""

import random
from collections import Counter

from functions.api.operations import Api
from functions.api.runs import CallsWanted, RunsWanted
from functions.core.errors import NotFound, Unavailable
from functions.core.keys import RunRef
from tests.fakes.dynamodb import MemoryDynamoDB
from tests.simulation.scenario import TENANTS
from tests.simulation.tasks import Killed, Tasks


class Reader:
    """Whatever it sees belongs to the tenant that asked, each thing once and in order (I8, I9)."""

    def __init__(
        self, api: Api, tasks: Tasks, draw: random.Random, coverage: Counter[str], times: int
    ) -> None:
        self._api = api
        self._tasks = tasks
        self._draw = draw
        self._coverage = coverage
        self._times = times
        self.wrong: list[str] = []

    def read(self, dynamodb: MemoryDynamoDB) -> None:
        for _ in range(self._times):
            for _ in range(self._draw.randint(0, 40)):
                self._tasks.pause()
            if self._draw.random() < 0.3:
                dynamodb.settle()
                self._coverage["weather/index caught up"] += 1
            try:
                self._look(self._draw.choice(TENANTS))
            except (Unavailable, NotFound, Killed) as answer:
                self._coverage[f"reader/{type(answer).__name__}"] += 1

    def _look(self, tenant_id: str) -> None:
        wanted = RunsWanted(limit=self._draw.choice((1, 2, 20)))
        listed = [row.value.run_id for row in self._api.list_runs(tenant_id, wanted).rows]  # type: ignore[attr-defined]
        if len(set(listed)) != len(listed):
            self.wrong.append(f"I9: a run twice in one list: {listed}")
        self._coverage["reader/list"] += 1
        seen: list[str] = []
        cursor: str | None = None
        while True:
            page = self._api.read_run(RunRef(tenant_id, "run-1"), CallsWanted(cursor=cursor))
            most = self._draw.choice((1, 3, 1_000))
            rows = [row for _, row in zip(range(most), page.rows, strict=False)]
            seen += [row.value.step_id for row in rows]  # type: ignore[attr-defined]
            self._coverage["reader/page of calls"] += 1
            if len(rows) < most:
                break
            cursor = rows[-1].cursor
        if seen != sorted(set(seen)):
            self.wrong.append(f"I9: calls out of order or twice: {seen}")
