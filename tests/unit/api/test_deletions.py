"""Deleting a run over HTTP: accepted, its receipt, and 404 for everything else."""

import pytest

from functions.api.operations import OPERATIONS
from tests import build
from tests.api import HttpClient, issue_key
from tests.build import RUN
from tests.memory_stage import MemoryStage


@pytest.fixture
def client(stage: MemoryStage) -> HttpClient:
    steps = (build.step(1, payload="x"), build.step(2))
    stage.ingest(build.body(build.started(), *steps, build.ended(result="done")))
    stage.drain()
    return HttpClient(stage, issue_key(stage, RUN.tenant_id))


def test_a_deletion_is_accepted_and_says_where_its_receipt_is(
    stage: MemoryStage, client: HttpClient
) -> None:
    accepted = client.send("DELETE", f"/pipeline-runs/{RUN.run_id}")
    assert accepted.status == 202
    place = accepted.headers["location"]
    assert place == f"/api/v1/pipeline-runs/{RUN.run_id}/deletion"
    receipt = client.get(place.removeprefix("/api/v1"))
    assert (receipt.status, receipt.json) == (200, accepted.json)
    stage.erase_all()
    finished = client.get(place.removeprefix("/api/v1")).json
    assert (finished["status"], finished["items"], finished["objects"]) == ("finished", 6, 1)
    again = client.send("DELETE", f"/pipeline-runs/{RUN.run_id}")
    assert (again.status, again.json) == (202, finished)


def test_a_place_is_a_path_whatever_the_id(stage: MemoryStage, client: HttpClient) -> None:
    run = RUN._replace(run_id="a:b.c")
    stage.ingest(build.body(build.started(), run=run))
    accepted = client.send("DELETE", "/pipeline-runs/a%3Ab.c")
    assert accepted.headers["location"] == "/api/v1/pipeline-runs/a%3Ab.c/deletion"
    assert client.get(accepted.headers["location"].removeprefix("/api/v1")).status == 200


OF_A_RUN = [o for o in OPERATIONS if "{run_id}" in o.path and o.name != "deleteRun"]


@pytest.mark.parametrize("operation", OF_A_RUN, ids=lambda o: o.name)
@pytest.mark.parametrize("finished", [False, True])
def test_a_deleted_run_is_404_everywhere_but_for_its_receipt(
    stage: MemoryStage, client: HttpClient, operation: object, finished: bool
) -> None:
    path = operation.path.format(run_id=RUN.run_id, step_id=build.step_id(1))  # type: ignore[attr-defined]
    before = client.get(path).status
    client.send("DELETE", f"/pipeline-runs/{RUN.run_id}")
    if finished:
        stage.erase_all()
    is_receipt = operation.name == "readDeletion"  # type: ignore[attr-defined]
    assert (before, client.get(path).status) == ((404, 200) if is_receipt else (200, 404))


def test_no_list_and_no_insights_know_it_any_more(stage: MemoryStage, client: HttpClient) -> None:
    for caught_up in (False, True):
        client.send("DELETE", f"/pipeline-runs/{RUN.run_id}")
        if caught_up:
            stage.dynamodb.settle()
            assert client.get("/pipeline-runs").json["runs"] == []
            assert client.get("/insights", view="summary").json["runs"] == 0
    compared = {"view": "compare", "a": RUN.run_id, "b": RUN.run_id}
    assert client.get("/insights", **compared).status == 404


def test_another_tenants_run_is_404_and_stays(stage: MemoryStage, client: HttpClient) -> None:
    other = HttpClient(stage, issue_key(stage, "globex"))
    for method, path in (("DELETE", ""), ("GET", "/deletion")):
        answer = other.send(method, f"/pipeline-runs/{RUN.run_id}{path}")
        assert answer.status == 404
    assert client.get(f"/pipeline-runs/{RUN.run_id}").status == 200
    client.send("DELETE", f"/pipeline-runs/{RUN.run_id}")
    assert other.get(f"/pipeline-runs/{RUN.run_id}/deletion").status == 404


def test_a_run_that_is_not_there_is_404(client: HttpClient) -> None:
    assert client.send("DELETE", "/pipeline-runs/nowhere").status == 404
    assert client.get("/pipeline-runs/nowhere/deletion").status == 404
    assert client.send("DELETE", "/pipeline-runs/no%2Fid").status in {400, 404}
