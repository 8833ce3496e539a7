"""The process behind `served.served_run`: records a run by the real ingest, and then answers as the
table that holds it, in DynamoDB's JSON protocol."""

import base64
import json
import math
import sys
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final

import msgspec
from botocore import xform_name
from botocore.exceptions import ClientError

from functions.core import keys
from runtally import wire
from tests import build
from tests.api import issue_key
from tests.fakes.dynamodb import item_size
from tests.memory_stage import MemoryStage

_PACKED_BY: Final = 100
_READ_UNIT_BYTES: Final = 4_096
_PAYLOAD: Final = {"messages": [{"role": "user", "content": "Read the failing test. " * 8}]}


def step(number: int) -> wire.Step:
    """One of the run's, with what the SDK says of a model call or of the tool call after it."""
    fields: dict[str, Any] = {
        "phase": f"phase-{number // 50 % 7}",
        "agent": f"coder-{number % 8}",
        "parent_id": build.step_id(number - number % 10 or 1),
        "session_id": "session-1",
        "attributes": {"finish_reason": "stop", "attempt": number % 3},
        "payload": _PAYLOAD,
    }
    if number % 2:
        fields |= {
            "name": "chat gpt-5-mini",
            "model": "gpt-5-mini",
            "provider": "openai",
            "input_tokens": 1_000 + number % 977,
            "output_tokens": 50 + number % 97,
            "cached_tokens": number % 503,
            "cost_computed_usd": f"0.00{number % 8_999 + 1_000}",
            "price_table": "2026-11-01",
        }
    else:
        fields |= {"name": "execute_tool read_file", "kind": "tool"}
    return build.step(number, **fields)


def stage_with(calls: int, buckets: int = 1) -> MemoryStage:
    """A stage that has recorded a run of so many calls, and summarised nothing yet."""
    stage = MemoryStage()
    for first in range(1, calls + 1, _PACKED_BY):
        events: list[wire.Event] = [
            step(number) for number in range(first, min(first + _PACKED_BY, calls + 1))
        ]
        if first == 1:
            events = [build.started(), *events]
        stage.ingest(build.body(*events, buckets=buckets))
    stage.ingest(build.body(build.ended(), buckets=buckets))
    return stage


def _serve(stage: MemoryStage) -> None:
    answer_once = cache(
        partial(_answer, stage)
    )  # the steps stay as they are: a Query's answer, too

    class Table(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            operation = xform_name(self.headers["X-Amz-Target"].rpartition(".")[2])
            ask = answer_once if operation == "query" else partial(_answer, stage)
            status, answer = ask(operation, body)
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.0")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Nothing: one line a request would be most of what it prints."""

    with HTTPServer(("127.0.0.1", 0), Table) as server:
        about = {
            "endpoint": f"http://127.0.0.1:{server.server_port}",
            "api_key": issue_key(stage, build.RUN.tenant_id),
            "read_units": _read_units(stage),
        }
        print(json.dumps(about), flush=True)  # noqa: T201 - its output
        server.serve_forever()


def _read_units(stage: MemoryStage) -> int:
    """Of strongly consistent Queries of all steps: by size, whatever of it is projected."""
    sizes = (
        item_size(item)
        for (_, sort), item in stage.dynamodb.items.items()
        if sort.startswith(keys.STEP_PREFIX)
    )
    return math.ceil(sum(sizes) / _READ_UNIT_BYTES)


def _answer(stage: MemoryStage, operation: str, body: bytes) -> tuple[int, bytes]:
    try:
        answer = getattr(stage.dynamodb, operation)(**_with_bytes(json.loads(body)))
    except ClientError as refused:
        error = refused.response["Error"]
        told = {"__type": error["Code"], "message": error["Message"]}
        return 400, msgspec.json.encode(told | {"Item": refused.response.get("Item")})
    return 200, msgspec.json.encode(answer)


def _with_bytes(plain: Any) -> Any:
    """`{"B": base64}` as boto3 would have handed it over."""
    if isinstance(plain, list):
        return [_with_bytes(one) for one in plain]
    if isinstance(plain, dict):
        if plain.keys() == {"B"} and isinstance(plain["B"], str):
            return {"B": base64.b64decode(plain["B"])}
        return {name: _with_bytes(value) for name, value in plain.items()}
    return plain


if __name__ == "__main__":
    _serve(stage_with(int(sys.argv[1]), int(sys.argv[2])))
