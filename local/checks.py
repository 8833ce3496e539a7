"""What `runtally doctor` looks at without sending anything: how a deployed stage is set up."""

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from functions.core.errors import Unavailable
from functions.core.keys import EXPIRES
from local import queues
from local.aws_errors import explained
from local.connect import LOCAL
from local.stage import Stage

_DEPLOY: Final = "Deploy the stacks again; somebody changed this by hand."
_EMULATED: Final = "the embedded AWS has no such thing"
_TIMEOUT_S: Final = 20

type Fetch = Callable[[str], int]
"""The HTTP status of a GET without credentials. Raises OSError when nobody answers."""


class Finding(Struct, frozen=True, omit_defaults=True):
    """What one check found. `ok` is None for what could not be looked at, with the reason."""

    check: str
    ok: bool | None
    said: str
    advice: str = ""
    ms: float | None = None


type Check = Callable[[Stage], Iterator[Finding]]


def findings(stage: Stage, checks: Iterator[Check]) -> Iterator[Finding]:
    """What all checks find, one after the other; what AWS refuses to tell is a finding too."""
    for check in checks:
        try:
            yield from check(stage)
        except (ClientError, BotoCoreError, Unavailable) as error:
            refused = explained(error.__cause__ or error)
            yield Finding(check.__name__.replace("_", " "), False, refused.failed, refused.advice)


def outputs(stage: Stage) -> Iterator[Finding]:
    """Whoever has a stage has found all of its outputs."""
    yield Finding("stack outputs", True, f"stage {stage.stage}, table {stage.table_name}")


def table(stage: Stage) -> Iterator[Finding]:
    name = stage.table_name
    described = stage.dynamodb.describe_table(TableName=name)["Table"]
    stream = described.get("StreamSpecification")
    images = stream.get("StreamViewType", "off") if stream else "off"
    yield _is("table", "ACTIVE", described["TableStatus"])
    yield _is("table's stream", "NEW_AND_OLD_IMAGES", images)
    if stage.stage == LOCAL:
        yield Finding("expiry", None, _EMULATED)
        yield Finding("point-in-time recovery", None, _EMULATED)
        return
    ttl = stage.dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    expiry = f"{ttl.get('TimeToLiveStatus')} by {ttl.get('AttributeName')}"
    yield _is("expiry", f"ENABLED by {EXPIRES}", expiry)
    backups = stage.dynamodb.describe_continuous_backups(TableName=name)
    recovery = backups["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    yield _is(
        "point-in-time recovery", "ENABLED", recovery.get("PointInTimeRecoveryStatus", "unknown")
    )


def event_sources(stage: Stage) -> Iterator[Finding]:
    """Each function but the api and the sweep has one, which is on and loses no record of a failed
    batch."""
    for function in stage.functions:
        if function in {stage.api_function, stage.sweep_function}:
            continue
        answer = stage.client("lambda").list_event_source_mappings(FunctionName=function)
        mappings = answer["EventSourceMappings"]
        wrong = [] if mappings else ["there is none"]
        for mapping in mappings:
            wrong += _faults_of(mapping)
        said = ", ".join(wrong) or "enabled"
        yield Finding(f"event source of {function}", not wrong, said, _DEPLOY if wrong else "")


def _faults_of(mapping: dict[str, Any]) -> Iterator[str]:
    if mapping["State"] != "Enabled":
        yield f"it is {mapping['State']}"
    if "ReportBatchItemFailures" not in mapping.get("FunctionResponseTypes", ()):
        yield "it does not report which items failed"
    if ":dynamodb:" not in mapping["EventSourceArn"]:
        return
    if not mapping.get("BisectBatchOnFunctionError"):
        yield "it does not bisect failed batches"
    if not (mapping.get("DestinationConfig") or {}).get("OnFailure", {}).get("Destination"):
        yield "it has no destination for failed batches"


def queue_policies(stage: Stage) -> Iterator[Finding]:
    """Each queue has dead letters, and takes no request without TLS."""
    for queue in queues.queues_of(stage):
        answer = stage.sqs.get_queue_attributes(QueueUrl=queue.url, AttributeNames=["All"])
        attributes: dict[str, str] = answer["Attributes"]  # type: ignore[assignment]
        wrong = []
        if "deadLetterTargetArn" not in attributes.get("RedrivePolicy", ""):
            wrong.append("it has no dead-letter queue")
        if stage.stage != LOCAL and "aws:SecureTransport" not in attributes.get("Policy", ""):
            wrong.append("its policy allows requests without TLS")
        tls = "dead letters" if stage.stage == LOCAL else "dead letters, TLS only"
        said = ", ".join(wrong) or tls
        yield Finding(f"queue of {queue.name}", not wrong, said, _DEPLOY if wrong else "")


def dead_letters(stage: Stage) -> Iterator[Finding]:
    """A message that was refused is told about, and asks for somebody who looks at it."""
    at = "" if stage.stage == LOCAL else f" --stage {stage.stage}"
    for queue in queues.queues_of(stage):
        there = queues.length(stage, queue.dead_letters_url)
        look = (
            f"Look at them: `runtally dlq list --queue {queue.name}{at}` says why they are there."
        )
        said = f"{there:,} there" if there else "none"
        yield Finding(f"dead letters of {queue.name}", not there, said, look if there else "")


def versions(stage: Stage) -> Iterator[Finding]:
    functions = stage.client("lambda")
    runtimes = {
        functions.get_function_configuration(FunctionName=name)["Runtime"]
        for name in stage.functions
    }
    said = f"runtally {version('runtally-stage')}, boto3 {boto3.__version__}, functions on "
    said += ", ".join(sorted(runtimes))
    mixed = "Deploy the stacks again: the functions are of different versions."
    yield Finding("versions", len(runtimes) == 1, said, mixed if len(runtimes) > 1 else "")


def http_api(fetch: Fetch) -> Check:
    """It answers anybody with its description, and nobody without a key with runs."""

    def http_api(stage: Stage) -> Iterator[Finding]:
        for path, wanted in (
            ("openapi.json", HTTPStatus.OK),
            ("pipeline-runs", HTTPStatus.UNAUTHORIZED),
        ):
            url = f"{stage.api_url}/api/v1/{path}"
            try:
                status = fetch(url)
            except OSError as error:
                yield Finding(f"GET {path}", False, f"{url}: {error}", "See the API's stack.")
                continue
            advice = "" if status == wanted else "The logs of the api function tell more."
            said = f"{status}" if status == wanted else f"{status}, not {wanted.value}"
            yield Finding(f"GET {path} without a key", status == wanted, said, advice)

    return http_api


def fetch(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as response:  # noqa: S310 - ours
            status: int = response.status
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.code
    return status


def _is(check: str, wanted: str, found: str) -> Finding:
    if found == wanted:
        return Finding(check, True, found)
    return Finding(check, False, f"{found}, not {wanted}", _DEPLOY)
