"""Requests as API Gateway hands them over, the files of events/api among them, and what comes back
of them whatever happens."""

import logging
import re
from collections.abc import Callable
from typing import Any

import pytest

from functions.api.operations import OPERATIONS
from tests.api import Answer, HttpClient, issue_key, manage_tenants, request_event
from tests.build import SECOND
from tests.event_files import EVENTS, event
from tests.examples import KEY, TENANT, client_of_examples
from tests.fakes.calls import client_error
from tests.memory_stage import MemoryStage

RUN = "nightly-2026-11-30"


@pytest.fixture
def client(stage: MemoryStage) -> HttpClient:
    return client_of_examples(stage)


FILES: dict[str, tuple[int, Callable[[Any], Any], Any]] = {
    "list-runs": (200, lambda it: [run["run_id"] for run in it["runs"]], [RUN]),
    "list-runs-of-two-statuses": (400, lambda it: it["field"], "status"),
    "read-run": (200, lambda it: (it["run"]["status"], len(it["calls"])), ("failed", 1)),
    "read-result": (200, lambda it: it["result"], "because"),
    "read-payload": (200, lambda it: it["payload"], {"question": "why?"}),
    "read-event": (200, lambda it: it["event"]["cost_usd"], "0.004125"),
    "read-insights": (200, lambda it: (it["runs"], it["pipelines"][0]["calls"]), (1, 1)),
    "read-insights-compare": (200, lambda it: it["change"]["cost_usd"], 0),
    "invoke": (202, lambda it: it["status"], "succeeded"),
    "read-invocation": (200, lambda it: (it["status"], it["result_bytes"]), ("succeeded", 300_003)),
    "send-events": (202, lambda it: it, {"accepted": 4, "refused_total": 0, "refused": []}),
    "delete-run": (202, lambda it: (it["run_id"], it["status"]), (RUN, "running")),
    "read-deletion": (404, lambda it: it["reason"], "not_found"),
    "openapi": (200, lambda it: it["openapi"], "3.1.0"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_request_of_the_gateway_is_answered(name: str, client: HttpClient) -> None:
    status, fact, expected = FILES[name]
    answer = client.answer(event(f"api/{name}"))
    assert (answer.status, fact(answer.json)) == (status, expected)
    kind = "application/json" if status < 400 else "application/problem+json"
    assert answer.headers["content-type"] == kind
    assert answer.headers["cache-control"] == "no-store"
    # Pages come from the same origin; for others API Gateway answers, when the stage names them.
    assert not [header for header in answer.headers if header.startswith("access-control-")]


def test_there_is_a_file_for_each_operation_and_each_file_is_answered() -> None:
    files = {file.stem for file in (EVENTS / "api").iterdir()} - {"dead-jobs"}
    assert files == set(FILES)
    assert files >= {re.sub("(?=[A-Z])", "-", o.name).lower() for o in OPERATIONS}


def asked(**changes: Any) -> dict[str, Any]:
    return {**event("api/list-runs"), **changes}


def test_header_names_count_in_any_case(client: HttpClient) -> None:
    headers = {"AUTHORIZATION": f"Bearer {KEY}", "Accept-ENCODING": "gzip"}
    answer = client.answer(asked(headers=headers))
    assert answer.status == 200
    assert answer.headers["content-encoding"] == "gzip"


def test_a_request_without_query_takes_the_defaults(client: HttpClient) -> None:
    given = asked(rawQueryString="")
    del given["queryStringParameters"]
    assert len(client.answer(given).json["runs"]) == 1


@pytest.mark.parametrize("body", [{}, {"body": None}, {"body": ""}])
def test_a_request_without_the_body_that_it_needs_is_refused(
    body: dict[str, Any], client: HttpClient
) -> None:
    given = event("api/send-events")
    del given["body"]
    answer = client.answer({**given, **body})
    assert (answer.status, answer.json["reason"]) == (400, "not_json")


def test_a_parameter_is_the_text_that_it_says(client: HttpClient) -> None:
    """A pipeline may be called `null`, and is not no pipeline."""
    assert client.get("/pipeline-runs", pipeline="null").json["runs"] == []
    for name in ("status", "from", "cursor"):
        assert client.get("/pipeline-runs", **{name: "null"}).status == 400, name


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/api/v1/nothing", 404, None),
        ("GET", "/api/v1/", 404, None),
        ("GET", "/", 404, None),
        ("GET", "/api/v1/pipeline-runs/", 404, None),
        ("GET", f"/api/v1/pipeline-runs/{RUN}/", 404, None),
        ("GET", f"/api/v1/pipeline-runs/{RUN}/result/more", 404, None),
        ("GET", f"/api/v1//pipeline-runs/{RUN}", 404, None),
        ("DELETE", "/api/v1/nothing", 404, None),
        ("POST", "/api/v1/pipeline-runs", 405, "GET"),
        ("POST", "/api/v1/openapi.json", 405, "GET"),
        ("GET", "/api/v1/events", 405, "POST"),
        ("HEAD", f"/api/v1/pipeline-runs/{RUN}", 405, "DELETE, GET"),
        ("OPTIONS", f"/api/v1/pipeline-runs/{RUN}", 405, "DELETE, GET"),
        ("PUT", f"/api/v1/pipeline-runs/{RUN}/result", 405, "GET"),
    ],
)
def test_what_is_not_there_is_a_problem_too(
    method: str, path: str, status: int, allow: str | None, client: HttpClient
) -> None:
    answer = client.answer(request_event(method, path))
    assert (answer.status, answer.headers.get("allow")) == (status, allow)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["status"] == status
    assert set(answer.json) == {"type", "title", "status", "detail", "reason"}


def failing(client: HttpClient, stage: MemoryStage, error: Exception) -> Answer:
    """The answer to a request whose query fails after the key was found."""

    def fail(call: str, when: str) -> None:
        if call == "dynamodb.query":
            raise error

    stage.calls.hook = fail
    return client.get("/pipeline-runs")


def test_a_fault_of_its_own_is_logged_once_and_told_to_nobody(
    stage: MemoryStage, client: HttpClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "api")
    answer = failing(client, stage, RuntimeError("a secret of the house"))
    problem = answer.json
    assert (answer.status, problem["reason"]) == (500, "internal_error")
    assert b"secret" not in answer.body
    assert "RuntimeError" not in str(answer)
    (record,) = caplog.records
    assert vars(record)["request_id"] == problem["instance"] == "JKJaXmPLvHcESHA="
    assert record.exc_info is not None
    assert "a secret of the house" in str(record.exc_info[1])
    assert "in fail" in caplog.text  # the traceback, down to where it happened


def test_a_service_that_cannot_answer_is_worth_another_try(
    stage: MemoryStage, client: HttpClient
) -> None:
    throttled = client_error("Query", "ThrottlingException", "rate exceeded for table t")
    answer = failing(client, stage, throttled)
    assert (answer.status, answer.json["reason"]) == (503, "unavailable")
    assert answer.headers["retry-after"] == "2"
    assert "table" not in str(answer)


NO_KEYS = {
    "missing": None,
    "empty": "",
    "no scheme": KEY,
    "another scheme": f"Basic {KEY}",
    "no key": "Bearer ",
    "wrong": "Bearer rt_" + "A" * 43,
    "10 KB": "Bearer " + "x" * 10_240,
    "not ASCII": "Bearer rt_ключ",
    "half a surrogate": "Bearer rt_\ud800",
}


def test_whatever_is_no_key_gets_the_very_same_answer_and_no_key_is_logged(
    stage: MemoryStage,
    client: HttpClient,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG, "api")
    answers: dict[str, Answer] = {}
    for operation in OPERATIONS:
        path = "/api/v1" + operation.path.replace("{", "").replace("}", "")
        for name, sent in NO_KEYS.items():
            headers = {} if sent is None else {"Authorization": sent}
            answers[f"{operation.name} {name}"] = client.answer(
                request_event(operation.method, path, headers=headers)
            )
    assert client.get("/pipeline-runs").status == 200
    stage.now_ns += SECOND
    expired = issue_key(stage, TENANT)
    stage.dynamodb.settle()
    manage = manage_tenants(stage)
    newest, oldest = manage.list_keys(TENANT)
    manage.revoke_key(TENANT, oldest.key_id)
    manage.rotate_key(TENANT, newest.key_id, overlap_s=60)
    answers["revoked"] = client.get("/pipeline-runs")
    assert HttpClient(stage, expired).get("/pipeline-runs").status == 200
    stage.now_ns += 60 * SECOND
    answers["expired"] = HttpClient(stage, expired).get("/pipeline-runs")
    first, *others = answers.values()
    assert (first.status, first.headers["www-authenticate"]) == (401, "Bearer")
    assert all(other == first for other in others)
    logged = caplog.text + repr([vars(r) for r in caplog.records]) + str(capsys.readouterr())
    for secret in (KEY, expired, *filter(None, NO_KEYS.values())):
        assert secret not in logged
