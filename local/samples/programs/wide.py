"""A wide run: 1,500 calls, eight at a time. Shows fan-out, phases of any size, and tiny costs.

The model guesses which numbers are prime, by a rule that is wrong for a few; a tool checks each
guess by division. So a few checks fail, while the run succeeds.
"""

import sqlite3
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from decimal import Decimal
from math import isqrt

from local.samples.scripted_model import ScriptedModel
from runtally import Recorder, Run

PIPELINE = "wide"
NUMBERS = range(252, 1001)  # 749: with a guess and a check for each, and two steps around, 1,500
FAN_OUT = 8


class WrongGuess(Exception):  # noqa: N818
    """The model took a composite number for a prime."""


def main(recorder: Recorder) -> None:
    with (
        recorder.run(pipeline=PIPELINE, attributes={"numbers": len(NUMBERS)}) as run,
        ThreadPoolExecutor(max_workers=FAN_OUT) as threads,
    ):
        numbers = load(run)
        model = ScriptedModel(
            fermat,
            system="Is the number prime? Answer yes or no.",
            output_usd=Decimal("0.000001098765432123"),  # as a discount leaves it
        )
        guesses = list(threads.map(lambda n: guess(run, model, n), numbers))
        checked = list(threads.map(lambda n, said: check(run, n, said), numbers, guesses))
        run.result = report(run, zip(numbers, checked, strict=True))


def load(run: Run) -> list[int]:
    with run.step("load", phase="load", kind="tool") as step:
        numbers = list(NUMBERS)
        step.set(payload={"from": numbers[0], "to": numbers[-1]})
    return numbers


def fermat(prompt: str) -> str:
    """What this model believes: n is prime if it divides 2^n - 2. Not so for 341, 561 and 645."""
    number = int(prompt)
    return "yes" if pow(2, number, number) == 2 else "no"


def guess(run: Run, model: ScriptedModel, number: int) -> bool:
    return model.ask(run, str(number), phase="guess") == "yes"


def check(run: Run, number: int, said: bool) -> bool:
    """Whether the number is prime; a wrong guess fails the step, not the run."""
    prime = all(number % divisor for divisor in range(2, isqrt(number) + 1))
    with suppress(WrongGuess), run.step("divide", phase="check", kind="tool") as step:
        step.set(attributes={"number": number, "prime": prime})
        if said != prime:
            raise WrongGuess(f"{number} is {'prime' if prime else 'composite'}")
    return prime


def report(run: Run, checked: Iterable[tuple[int, bool]]) -> dict[str, int]:
    """The tool: counts by a query to a database."""
    with (
        run.step("query", phase="report", kind="tool") as step,
        closing(sqlite3.connect(":memory:")) as database,
    ):
        database.execute("CREATE TABLE checked (number INTEGER, prime INTEGER)")
        database.executemany("INSERT INTO checked VALUES (?, ?)", checked)
        row = database.execute("SELECT count(*), sum(prime), max(number) FROM checked").fetchone()
        counts = dict(zip(("numbers", "primes", "largest"), row, strict=True))
        step.set(payload=counts)
    return counts


if __name__ == "__main__":
    with Recorder.from_environment() as to_queue:
        main(to_queue)
