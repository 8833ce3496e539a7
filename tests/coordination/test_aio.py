"""The same for asyncio; the blocking half is made from it."""

import asyncio
from collections.abc import Iterator

import pytest

from runtally.coordination import BudgetExceeded, Busy, Cancelled, StateLost, Unavailable
from runtally.coordination.aio import Coordinator
from tests.coordination.server import Server, programs
from tests.coordination.virtual import new_run_id
from tools import blocking


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(programs()[0]) as server:
        yield server


def test_the_blocking_half_is_made_from_this_one() -> None:
    for file, text in blocking.made():
        assert file.read_text() == text, f"{file.name}: run `python -m tools.blocking`"


def test_eight_tasks_share_a_run(server: Server) -> None:
    async def work() -> tuple[int, int, int]:
        async with Coordinator(tenant_id="acme", url=server.url) as coordinator:
            run_id = new_run_id()
            opened = await coordinator.open(run_id)
            working = most = 0

            async def worker() -> int:
                nonlocal working, most
                spent = 0
                state = await coordinator.join(run_id)
                async with state:
                    while True:
                        async with state.semaphore("model", 3).slot(wait_s=30):
                            working += 1
                            most = max(most, working)
                            try:
                                async with await state.budget("cost", 100).reserve(10) as cost:
                                    await asyncio.sleep(0.001)
                                    await cost.settle(7)
                            except BudgetExceeded:
                                return spent
                            finally:
                                working -= 1
                            spent += 7

            spent = await asyncio.gather(*(worker() for _ in range(8)))
            left = await opened.budget("cost", 100).left()
            return sum(spent), left, most

    spent, left, most = asyncio.run(work())
    assert spent + left == 100
    assert left < 10
    assert most == 3


def test_hearts_beat_between_the_lines(server: Server) -> None:
    async def work() -> None:
        async with Coordinator(tenant_id="acme", url=server.url, ttl_s=3.0) as coordinator:
            run_id = new_run_id()
            async with await coordinator.open(run_id) as state:
                other = await coordinator.join(run_id)
                await state.heartbeat("planner")
                async with state.lease("index") as lease:
                    await other.cancel("enough")
                    await asyncio.sleep(4.0)
                    assert lease.held
                    assert (await other.workers())["planner"] < 3.0
                    with pytest.raises(Cancelled):
                        state.raise_if_cancelled()
                    with pytest.raises(Busy):
                        await other.lease("index").acquire()

    asyncio.run(work())


def test_a_cancelled_task_gives_back_what_it_held(server: Server) -> None:
    async def work() -> None:
        async with Coordinator(tenant_id="acme", url=server.url) as coordinator:
            state = await coordinator.open(new_run_id())
            holds = asyncio.Event()

            async def hold() -> None:
                async with state.lease("index"):
                    holds.set()
                    await asyncio.sleep(60)

            task = asyncio.create_task(hold())
            await holds.wait()
            with pytest.raises(Busy):
                await state.lease("index").acquire()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            async with state.lease("index"):
                pass
            await state.close()

    asyncio.run(work())


def test_errors_are_the_same(server: Server) -> None:
    async def work() -> None:
        async with Coordinator(tenant_id="acme", url=server.url) as coordinator:
            run_id = new_run_id()
            state = await coordinator.open(run_id)
            server.flush()
            with pytest.raises(StateLost):
                await state.scratchpad.get("plan")
            server.kill()
            with pytest.raises(Unavailable):
                await state.scratchpad.get("plan")
            with pytest.raises(Unavailable):
                await coordinator.join(run_id)

    asyncio.run(work())
