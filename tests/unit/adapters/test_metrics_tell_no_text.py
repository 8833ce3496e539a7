"""No line that a function prints holds what a tenant sent, whatever happens, at any level."""

import logging
from io import BytesIO
from typing import Any, cast

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from functions.adapters.telemetry import Defect, Telemetry
from functions.core.errors import Unavailable
from tests import happenings
from tests.happenings import SECRET
from tests.memory_stage import MemoryStage
from tests.telling import SERVICES, listening


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
def test_no_line_of_any_function_holds_it(
    level: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Not of the libraries either: at DEBUG, a stage lets all of them speak."""
    caplog.set_level(level)
    with listening(monkeypatch, capsys, "runtally/test", level) as (stage, told):
        happenings.everything(stage)
        lines = told.lines()
    assert {line["service"] for line in lines if "service" in line} == set(SERVICES)
    assert {"rejected", "run summarized", "phase failed", "request failed", "function failed"} < {
        line["message"] for line in lines if "message" in line
    }
    assert [line for line in lines if SECRET in str(line)] == []
    of_libraries = [each for each in caplog.records if each.name not in SERVICES]
    assert [each for each in of_libraries if SECRET in each.getMessage()] == []
    everywhere = f"{stage.s3.objects} {stage.dynamodb.items} {stage.sqs.queues}"
    assert everywhere.count(SECRET) > 20


@pytest.mark.filterwarnings("ignore:POWERTOOLS_DEV:UserWarning")
def test_no_variable_of_the_environment_makes_the_api_print_requests(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Powertools has one that does."""
    monkeypatch.setenv("POWERTOOLS_DEV", "true")
    stage = MemoryStage()
    happenings.record(stage)
    happenings.call_the_api(stage)
    assert SECRET not in capsys.readouterr().out


def test_libraries_log_no_request() -> None:
    """botocore's DEBUG has headers and bodies; the level of a stage reaches it through the root."""
    Telemetry("ingest")
    root = logging.getLogger()
    heard: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    listener, usual = Listener(), root.level
    root.addHandler(listener)
    root.setLevel("DEBUG")
    try:
        _put_item_with_secret()
    finally:
        root.removeHandler(listener)
        root.setLevel(usual)
    assert [line for line in heard if SECRET in line] == []


def _put_item_with_secret() -> None:
    client = boto3.client(
        "dynamodb",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        endpoint_url="http://127.0.0.1:1",
    )
    sent: list[Any] = []

    def answer(request: Any, **_: Any) -> AWSResponse:
        sent.append(request.body)
        return AWSResponse(request.url, 200, HTTPHeaders(), _Raw(b"{}"))

    client.meta.events.register("before-send.dynamodb.PutItem", cast("Any", answer))
    client.put_item(TableName="t", Item={"payload": {"S": SECRET}})
    client.close()
    assert SECRET in str(sent)


class _Raw(BytesIO):
    def stream(self, *_: Any, **__: Any) -> Any:
        yield self.read()


def test_an_exception_is_told_by_its_type_and_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening(monkeypatch, capsys, "runtally/test", "INFO") as (_, told):
        telemetry = Telemetry("ingest")
        try:
            try:
                int(SECRET)
            except ValueError as error:
                raise KeyError(SECRET) from error
        except KeyError:
            telemetry.logger.exception("defect")
        with pytest.raises(Defect, match=r"^ValueError$"), telemetry.without_words():
            int(SECRET)
        with pytest.raises(Unavailable), telemetry.without_words():
            raise Unavailable("DynamoDB get_item: Throttled")
        defect, whole = told.lines()
    assert defect["exception"].startswith("KeyError\n")
    assert "\nValueError\n" in defect["exception"]
    assert "int(SECRET)" in defect["exception"]
    assert (defect["exception_name"], whole["message"]) == ("KeyError", "function failed")
    assert SECRET not in f"{defect}{whole}"


def test_what_aws_said_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening(monkeypatch, capsys, "runtally/test", "INFO") as (_, told):
        failure = Unavailable("DynamoDB get_item: AccessDeniedException")
        Telemetry("ingest").logger.warning("again", exc_info=failure)
        (line,) = told.lines()
    assert line["exception"].strip() == "Unavailable: DynamoDB get_item: AccessDeniedException"
