# /// script
# requires-python = ">=3.11"
# dependencies = ["runtally[valkey]"]
# [tool.uv]
# exclude-newer = "2026-11-29T00:00:00Z"
# [tool.uv.sources]
# runtally = { path = "../../sdk", editable = true }
# ///
"""Eight worker processes spend one run's budget, four calls of a model at a time, and stop in time.

    export RUNTALLY_TENANT_ID=… RUNTALLY_QUEUE_URL=… RUNTALLY_VALKEY_URL=valkey://localhost:6379
    python shared_budget.py

Prints a line of JSON for each worker, and one for the run. Nothing leaves the machine but what is
recorded: a call of the model is a short sleep, and its tokens are drawn from the worker's number.
"""

import json
import random
import subprocess
import sys
import time
from decimal import Decimal

from runtally import Recorder
from runtally.coordination import BudgetExceeded, Cancelled, Coordinator, RunState

PIPELINE = "shared budget"
WORKERS = 8
AT_ONCE = 4  # the model's rate limit
BUDGET = "nano-dollars"
LIMIT = 50_000_000  # five cents
INPUT_TOKEN, OUTPUT_TOKEN = 270, 1_100  # what each costs, in nano-dollars
MOST_INPUT, MOST_OUTPUT = 1_600, 400
DEAREST = MOST_INPUT * INPUT_TOKEN + MOST_OUTPUT * OUTPUT_TOKEN


def usd(nano_dollars: int) -> Decimal:
    """The same amount to the last digit: a power of ten is moved, nothing is divided."""
    return Decimal(nano_dollars).scaleb(-9)


def ask_model(chance: random.Random) -> tuple[int, int]:
    """Input and output tokens of a call that takes its time, as one over the network would."""
    time.sleep(chance.uniform(0.03, 0.1))
    tokens_in = chance.randint(MOST_INPUT // 4, MOST_INPUT)
    return tokens_in, chance.randint(MOST_OUTPUT // 8, MOST_OUTPUT)


def start() -> None:
    """Begins the run and what it shares, starts its workers, and ends it when they are done."""
    with (
        Recorder.from_environment() as recorder,
        Coordinator.from_environment() as coordinator,
        recorder.run(PIPELINE, attributes={"limit_usd": str(usd(LIMIT))}) as run,
        coordinator.open(run.run_id) as state,
    ):
        workers = [
            subprocess.Popen(  # noqa: S603 - this program
                [sys.executable, __file__, str(number), run.run_id], stdout=subprocess.PIPE
            )
            for number in range(1, WORKERS + 1)
        ]
        said = [worker.communicate()[0].decode() for worker in workers]
        if any(worker.returncode for worker in workers):
            raise RuntimeError("a worker failed")
        run.result = {
            "run_id": run.run_id,
            "at_once": AT_ONCE,
            "limit": LIMIT,
            "spent": state.budget(BUDGET, LIMIT).spent(),
            "stopped": state.cancelled(),
        }
    print(*said, json.dumps(run.result), sep="")


def work(number: int, run_id: str) -> None:
    """Calls the model until the budget is spent, or another worker has found it so."""
    worker, chance = f"worker-{number}", random.Random(number)  # noqa: S311 - no secret
    calls = spent = refused = 0
    with (
        Recorder.from_environment() as recorder,
        Coordinator.from_environment() as coordinator,
        coordinator.join(run_id) as state,
    ):
        run = recorder.run(PIPELINE, run_id=run_id)  # not entered: it only adds steps
        model = state.semaphore("model", AT_ONCE)
        budget = state.budget(BUDGET, LIMIT)
        state.heartbeat(worker)
        wait_for_all(state)
        try:
            while True:
                with model.slot(wait_s=60):
                    # Here, as whoever waited for a slot has heard of it with the slot.
                    state.raise_if_cancelled()
                    reservation = budget.reserve(DEAREST)
                    with run.step("ask", phase="ask", kind="model", agent=worker) as step:
                        tokens_in, tokens_out = ask_model(chance)
                        cost = tokens_in * INPUT_TOKEN + tokens_out * OUTPUT_TOKEN
                        step.set(input_tokens=tokens_in, output_tokens=tokens_out)
                        step.set(model="scripted-1", cost_usd=usd(cost))
                    reservation.settle(cost)
                calls, spent = calls + 1, spent + cost
                time.sleep(chance.uniform(0.02, 0.07))  # what an agent does with an answer
        except BudgetExceeded as exceeded:
            refused = exceeded.units
            run.log(f"{worker}: {exceeded}")
            state.cancel(f"{worker}: {exceeded}")
        except Cancelled:
            pass
    print(json.dumps({"worker": worker, "calls": calls, "spent": spent, "refused": refused}))


def wait_for_all(state: RunState) -> None:
    """Until every worker was heard of: they start within a second or two of each other, and those
    that come first would leave nothing for the rest. One that never comes is not waited for."""
    give_up_at = time.monotonic() + 20
    while len(state.workers()) < WORKERS and time.monotonic() < give_up_at:
        time.sleep(0.05)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        work(int(sys.argv[1]), sys.argv[2])
    else:
        start()
