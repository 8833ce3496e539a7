"""Whatever is sent to it, the API answers as its own document says."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import settings
from schemathesis import BaseSchema

from functions.api.openapi import EXAMPLES
from functions.api.operations import OPERATIONS, PATH_TYPES
from tests.examples import KEY, client_of_examples
from tests.memory_stage import MemoryStage
from tests.wsgi import WsgiApp

MORE_THAN_A_SCHEMA: Final = ("listRuns", "readRun", "readInsights", "sendEvents", "invoke")
"""Operations that refuse what no schema can describe: a cursor of another list, times in the wrong
order, times before the retention, events of a run without its id, 60.0 for 60."""
APP: Final = WsgiApp(client_of_examples(MemoryStage()))
SETTINGS: Final = settings(max_examples=100, derandomize=True, database=None)
type Seen = defaultdict[str, set[int]]


def api(*, refuses_more: bool) -> BaseSchema:
    config = {
        "headers": {"Authorization": f"Bearer {KEY}"},
        # Half of the ids exist.
        "dictionaries": {name: {"values": [EXAMPLES[name]]} for name in PATH_TYPES},
        "parameters": {f"path.{n}": {"dictionary": n, "probability": 0.5} for n in PATH_TYPES},
        "checks": {
            "positive_data_acceptance": {"enabled": not refuses_more},
            "use_after_free": {"enabled": False},  # the receipt of a deletion outlives the run
        },
        "phases": {"coverage": {"generate-duplicate-query-parameters": True}},
        "warnings": False,
    }
    return schemathesis.openapi.from_wsgi(
        "/api/v1/openapi.json", APP, config=schemathesis.Config.from_dict(config)
    )


@pytest.fixture(scope="module")
def statuses() -> Iterator[Seen]:
    """What each operation has answered; each that was asked must have succeeded, too."""
    seen: Seen = defaultdict(set)
    yield seen
    for operation in OPERATIONS:
        if operation.name == "readDeletion":
            continue  # the run of the examples is there, so it has no such receipt
        succeeded = operation.status in seen[operation.name]
        assert succeeded or not seen[operation.name], (operation.name, seen[operation.name])


def answers_of(name: str) -> Any:
    """A test: all that the operation answers is as it is documented."""
    operation = api(refuses_more=name in MORE_THAN_A_SCHEMA).include(operation_id=name)

    @operation.parametrize()
    @SETTINGS
    def test(case: schemathesis.Case[Any], statuses: Seen) -> None:
        statuses[name].add(case.call_and_validate().status_code)

    return test


# A function each: the tests of one would share one node id, and pytest-xdist runs an id once.
for operation in OPERATIONS:
    globals()[f"test_answers_of_{operation.name}"] = answers_of(operation.name)


def test_answers_of_any_session() -> None:
    """Requests after one another, each with ids and cursors that an answer gave before."""
    session = api(refuses_more=True).as_state_machine()
    session.run(settings=settings(SETTINGS, max_examples=20))
