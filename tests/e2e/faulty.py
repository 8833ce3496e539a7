"""The functions' way to AWS through a proxy that throttles, fails, and loses answers.

The proxy is microburst: a program of its own, which the functions take for the endpoint. It counts
what it did, so that a test can tell that faults happened.
"""

import json
import os
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Final, Self

from local import waiting
from local.commands import Command
from local.paths import LOGS
from local.serving import free_port
from local.stage import Stage

_READY_WITHIN_S: Final = 10
_LOG: Final = LOGS / "faulty-network.txt"
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")

type Rule = dict[str, Any]


def one_in(requests: int, **fault: Any) -> Rule:
    """The fault for exactly that share of the requests that it fits, beginning with the first."""
    return {"sequence": {"fail": 1, "pass": requests - 1}, **fault}


def failing(code: str, status: int) -> Rule:
    return {"error": {"code": code, "status": status}}


_CUT_OFF: Final = {"response": {"abort_bytes": 0}}
"""The request is carried out; the connection breaks before a byte of the answer's body."""

_NEVER_COMPLETE: Final = {"response": {"set_headers": {"Content-Length": "1000000"}}}
"""The request is carried out; the answer announces more than follows, for which the client waits
until its timeout. S3 answers a put without a body that could be cut off."""

OF_TOTALS: Final = "Key.SK.S == 'TOTALS'"
"""Fits the requests for live totals, by what their bodies ask for."""

OUTAGE: Final = failing("InternalServerError", 500)
"""Answers after which the SDK tries again within milliseconds, until it gives up."""

QUICK_FAULTS: Final[Mapping[str, Rule]] = {
    "answer lost, counts": one_in(
        5, service="dynamodb", operation="UpdateItem", body=OF_TOTALS, **_CUT_OFF
    ),
    "answer lost, DynamoDB": one_in(100, service="dynamodb", **_CUT_OFF),
    "answer lost, SQS": one_in(100, service="sqs", **_CUT_OFF),
    "failed": one_in(50, service="*", **OUTAGE),
    "throttled by key": one_in(
        40, service="dynamodb", **failing("ProvisionedThroughputExceededException", 400)
    ),
    "throttled by table": one_in(40, service="dynamodb", **failing("ThrottlingException", 400)),
    "throttled by S3": one_in(20, service="s3", **failing("SlowDown", 503)),
}
"""5 % throttling, 2 % server errors, 1 % carried out without an answer. A request meets the first
that is due, so that the shares of the later ones are a little smaller. Updates of TOTALS are few:
that some lose their answers takes a rule of its own."""

FAULTS: Final[Mapping[str, Rule]] = {
    "answer lost, S3": one_in(100, service="s3", operation="PutObject", **_NEVER_COMPLETE),
    **QUICK_FAULTS,
}
"""The same, and objects that were stored while the function waits ten seconds for the answer."""


class FaultyNetwork:
    """A proxy in front of the stage, which only its functions go through."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._names: dict[int, str] = {}

    @classmethod
    @contextmanager
    def before(cls, stage: Stage) -> Iterator[Self]:
        """For the length of a `with` block; at first it just passes on what it gets."""
        address = f"127.0.0.1:{free_port()}"
        port = address.rpartition(":")[2]
        upstream = stage.dynamodb.meta.endpoint_url
        program = [sys.executable, "-m", "microburst", "--upstream", upstream, "--port", port]
        with Command(program, os.environ, _LOG, f"Its output is in {_LOG}."):
            network = cls(f"http://{address}")
            waiting.until(network._is_ready, _READY_WITHIN_S, "The proxy did not start")
            with _functions_use(stage, network.endpoint):
                yield network

    def begin(self, faults: Mapping[str, Rule]) -> None:
        """From now on these happen, and no others."""
        rules = self._ask("POST", "rules", list(faults.values()))
        self._names |= {rule["id"]: name for rule, name in zip(rules, faults, strict=True)}

    def end(self) -> None:
        self.begin({})

    def happened(self) -> dict[str, int]:
        """How often each fault did, whether it still can or not."""
        by_rule = self._ask("GET", "stats")["by_rule"]
        return {self._names[rule["id"]]: rule["fired"] for rule in by_rule}

    def requests(self) -> dict[str, int]:
        """How many there were, with and without a fault, by service."""
        by_service = self._ask("GET", "stats")["by_service"]
        return {service["service"]: service["requests"] for service in by_service}

    def _is_ready(self) -> bool | None:
        try:
            return bool(self._ask("GET", "health"))
        except OSError:
            return None

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(  # noqa: S310 - an address of our own
            f"{self.endpoint}/_microburst/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
        )
        with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
            assert answer.status == HTTPStatus.OK
            return json.load(answer)


@contextmanager
def _functions_use(stage: Stage, endpoint: str) -> Iterator[None]:
    functions = stage.client("lambda")
    names = (stage.ingest_function, stage.summarize_function, stage.recount_function)
    before = {
        name: functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
        for name in names
    }

    def give(more: Mapping[str, str]) -> None:
        for name, variables in before.items():
            functions.update_function_configuration(
                FunctionName=name, Environment={"Variables": {**variables, **more}}
            )

    give(dict.fromkeys(_ENDPOINTS, endpoint))
    try:
        yield
    finally:
        give({})
