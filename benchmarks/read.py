"""The detail of a run, as the api's handler answers it to API Gateway: by its real boto3 client,
from a table in another process.

A run of 1,500 calls comes in one response. One of 100,000 takes as many as the limit of a response
makes it; each is asked for with the cursor of the one before. CPU is that of this process.
"""

import base64
import gzip
import json
import statistics
import subprocess
import sys
import time
from typing import Any, Final

from benchmarks.served import RUN, served_run
from functions.api import handler
from tests.api import request_event

ROUNDS: Final = {1_500: 9, 100_000: 2}
_PATH: Final = f"/api/v1/pipeline-runs/{RUN.run_id}"


def measure() -> dict[str, Any]:
    return {f"{calls:,}": _of(calls) for calls in ROUNDS}


def _of(calls: int) -> dict[str, Any]:
    with served_run(calls) as served:
        settings = {
            "RUNTALLY_TABLE": "t",
            "RUNTALLY_BUCKET": "b",
            "RUNTALLY_EVENT_QUEUE_URL": "https://sqs.invalid/events",
            "RUNTALLY_ERASURE_QUEUE_URL": "https://sqs.invalid/erasures",
            "RUNTALLY_RETENTION_DAYS": "365",
            "RUNTALLY_SERVICE_ENTRIES": "{}",
        }
        command = [sys.executable, "-m", "benchmarks.read", str(calls), served.api_key]
        made = subprocess.run(  # noqa: S603
            command, stdout=subprocess.PIPE, check=True, env=served.environment | settings
        )
    found: dict[str, Any] = json.loads(made.stdout)
    return found


def table(found: dict[str, Any]) -> str:
    line = (
        "  {calls:>7} calls in {responses} responses of at most {largest_mb} MB, {sent_mb} MB in"
        " all ({plain_mb} MB as text); {cpu_ms_best:,} ms of CPU at best, {cpu_ms_median:,} in the"
        " middle, {longest_ms:,} for the slowest response"
    )
    return "\n".join(line.format(calls=calls, **of) for calls, of in found.items())


def _measured(calls: int, api_key: str) -> dict[str, Any]:
    rounds = [_read(calls, api_key) for _ in range(1 + ROUNDS[calls])][1:]
    in_all = [sum(each.cpu_ms for each in answers) for answers in rounds]
    best = min(rounds, key=lambda answers: sum(each.cpu_ms for each in answers))
    return {
        "responses": len(best),
        "largest_mb": round(max(each.sent for each in best) / 1e6, 2),
        "sent_mb": round(sum(each.sent for each in best) / 1e6, 2),
        "plain_mb": round(sum(each.plain for each in best) / 1e6, 1),
        "cpu_ms_best": round(min(in_all)),
        "cpu_ms_median": round(statistics.median(in_all)),
        "longest_ms": round(max(each.cpu_ms for each in best)),
    }


class Answer:
    """One response: what Lambda hands to the gateway, in bytes, and what it holds."""

    def __init__(self, api_key: str, cursor: str | None) -> None:
        query = {"cursor": cursor} if cursor else {}
        headers = {"authorization": f"Bearer {api_key}", "accept-encoding": "gzip"}
        began = time.process_time()
        answer = handler.handle(request_event("GET", _PATH, query=query, headers=headers), None)
        self.cpu_ms = (time.process_time() - began) * 1_000
        if answer["statusCode"] != 200:
            raise AssertionError(answer)
        self.sent = len(json.dumps(answer))
        text = gzip.decompress(base64.b64decode(answer["body"]))
        self.plain = len(text)
        body = json.loads(text)
        self.calls = len(body["calls"])
        self.next: str | None = body.get("next")


def _read(calls: int, api_key: str) -> list[Answer]:
    answers = [Answer(api_key, None)]
    while answers[-1].next:
        answers.append(Answer(api_key, answers[-1].next))
    if sum(answer.calls for answer in answers) != calls:
        raise AssertionError(f"not all of {calls} calls were read")
    return answers


if __name__ == "__main__":
    json.dump(_measured(int(sys.argv[1]), sys.argv[2]), sys.stdout)
