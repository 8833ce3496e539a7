"""The scheduled entry: what it answers and publishes, and how it minds its time."""

from collections.abc import Callable

import pytest

from functions.adapters.dynamodb_tenants import DynamoDBTenants
from functions.adapters.telemetry import Defect
from functions.core import keys
from functions.core.errors import Unavailable
from functions.core.keys import RunRef
from functions.core.tenants import Tenant
from functions.sweep import handler
from tests import build, published
from tests.event_files import event
from tests.fakes.calls import client_error
from tests.memory_stage import MemoryStage

pytestmark = pytest.mark.usefixtures("metrics_on")


def silent() -> MemoryStage:
    stage = MemoryStage()
    stage.ingest(build.body(build.started(), build.step(1)))
    stage.drain()
    stage.now_ns += 4_000 * build.SECOND
    stage.dynamodb.settle()
    return stage


class Context:
    """Of an invocation that has so much time left."""

    def __init__(self, left_ms: int = 240_000) -> None:
        self.left_ms = left_ms

    def get_remaining_time_in_millis(self) -> int:
        return self.left_ms


def test_what_the_schedule_sends_makes_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = silent()
    monkeypatch.setattr(handler, "_parts", lambda: stage.sweep_parts)
    done = handler.handle(event("sweep/schedule"), Context())
    assert (done["OpenRuns"], done["RunsStale"], done["SweepsUnfinished"]) == (1, 1, 0)


def test_what_was_done_is_published(capsys: pytest.CaptureFixture[str]) -> None:
    stage = silent()
    published.read(capsys)
    stage.sweep()
    metrics = published.read(capsys)
    units = metrics.pop("WriteUnits")
    assert metrics == {"OpenRuns": 1, "RunsStale": 1, "RecountsRequested": 1}
    assert units == 2  # RUN, and its entry in the tenant's index, which shows the status
    stage.drain()
    published.read(capsys)
    stage.sweep()
    assert published.read(capsys) == {"OpenRuns": 1}


def test_without_time_nothing_is_begun_and_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    stage = silent()
    published.read(capsys)
    assert stage.sweep(left_ms=10_000)["SweepsUnfinished"] == 1
    metrics = published.read(capsys)
    assert metrics["SweepsUnfinished"] == 1
    assert "OpenRuns" not in metrics
    assert stage.sweep(left_ms=60_000)["SweepsUnfinished"] == 1  # kept for deletions


def test_a_sweep_that_cannot_list_the_runs_fails_for_all_to_see() -> None:
    stage = silent()

    def down(call: str, when: str) -> None:
        raise client_error(call, "InternalServerError")

    stage.calls.hook = down
    with pytest.raises(Exception, match="InternalServerError"):
        stage.sweep()


def down(what: str) -> Callable[[str, str], None]:
    def hook(call: str, when: str) -> None:
        if call.startswith(what):
            raise client_error(call, "InternalServerError")

    return hook


def test_a_queue_that_is_down_leaves_the_runs_for_the_next_sweep() -> None:
    stage = silent()
    stage.calls.hook = down("sqs")
    done = stage.sweep()
    assert (done["RunsStale"], done["RunsFailed"]) == (0, 1)
    stage.calls.hook = lambda call, when: None
    assert stage.sweep()["RunsStale"] == 1


def test_who_will_be_looked_at_again_is_named_in_fields(caplog: pytest.LogCaptureFixture) -> None:
    stage = silent()
    past_retention(stage)
    due = RunRef("globex", "ended")
    for ref in (build.RUN, due):
        stage.dynamodb.items[keys.item_of_run(ref, keys.RUN)]["v"] = {"N": "99"}
    caplog.clear()
    stage.sweep_parts.telemetry.logger.setLevel("INFO")
    assert stage.sweep()["RunsFailed"] == 2
    told = [vars(line) for line in caplog.records if line.msg == "will be looked at again"]
    assert [(line["tenant_id"], line["run_id"]) for line in told] == [build.RUN, due]


def past_retention(stage: MemoryStage) -> None:
    ended = RunRef("globex", "ended")
    stage.ingest(build.body(build.started(), build.ended(), run=ended))
    stage.drain()
    tenants = DynamoDBTenants(stage.sweep_parts.table)
    stage.now_ns += 2 * 86_400 * build.SECOND
    tenants.create_tenant(Tenant("globex", stage.now_ns, retention_days=1))


def test_deletions_and_figures_do_not_depend_on_the_sweep_of_open_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stage = silent()
    past_retention(stage)
    published.read(capsys)
    stage.calls.hook = down("dynamodb.get_item")  # the place of the last sweep
    with pytest.raises(Unavailable, match="InternalServerError"):
        stage.sweep()
    metrics = published.read(capsys)
    assert (metrics["DeletionsBegun"], metrics["SweepsUnfinished"]) == (1, 1)


def test_a_defect_in_the_sweep_costs_the_deletions_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stage = silent()
    past_retention(stage)
    published.read(capsys)
    stage.dynamodb.items[keys.run_partition(build.RUN), keys.RUN]["buckets"] = {"S": "no number"}
    with pytest.raises(Defect, match="ValueError"):
        stage.sweep()
    assert published.read(capsys)["DeletionsBegun"] == 1
