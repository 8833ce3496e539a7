"""The api's real handler, an event queue and a model, on ports of the loopback interface."""

import io
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, Final

from local.paths import ROOT
from tests.api import HttpClient, issue_key
from tests.memory_stage import EVENTS, MemoryStage
from tests.wsgi import StartResponse, WsgiApp, served

ADVISED: Final = {
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "64",
}
"""Settings that every recipe runs with, besides those that lead it here."""


@dataclass(frozen=True)
class Place:
    """A stage that can be reached over HTTP, and what it came to hold."""

    stage: MemoryStage
    client: HttpClient
    environment: Mapping[str, str]
    """What a program needs to find the stage and the model, as docs/integrations.md has it."""

    def the_run(self) -> Any:
        """The only run, once all that was sent is ingested and counted: what the API tells."""
        queued = self.stage.sqs.queues.get(EVENTS, [])
        assert queued, "nothing arrived"
        assert self.stage.ingest(*(message.body for message in queued)) == []
        queued.clear()
        self.stage.drain()
        self.stage.dynamodb.settle()
        assert self.stage.dead_letters() == []
        (run,) = self.client.get("/pipeline-runs").json["runs"]
        return self.client.get(f"/pipeline-runs/{run['run_id']}").json


@contextmanager
def serve() -> Iterator[Place]:
    stage = MemoryStage()
    stage.now_ns = time.time_ns()
    client = HttpClient(stage, issue_key(stage, "acme"))
    with served(Front(stage, WsgiApp(client))) as url, _model() as model:
        yield Place(
            stage,
            client,
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": url,
                "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{client.key}",
                "RUNTALLY_TENANT_ID": "acme",
                "RUNTALLY_QUEUE_URL": f"{url}/queue",
                "AWS_ENDPOINT_URL_SQS": url,
                "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": "none",
                "AWS_SECRET_ACCESS_KEY": "none",
                **model,
            },
        )


class Front:
    """The API and, at the same address, what the worker's library asks of SQS."""

    def __init__(self, stage: MemoryStage, api: WsgiApp) -> None:
        self._api = api
        self._stage = stage

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if environ.get("HTTP_TRANSFER_ENCODING") == "chunked":
            content = b"".join(_chunks_of(environ["wsgi.input"]))
            environ |= {"wsgi.input": io.BytesIO(content), "CONTENT_LENGTH": str(len(content))}
        if environ.get("HTTP_X_AMZ_TARGET") != "AmazonSQS.SendMessageBatch":
            return self._api(environ, start_response)
        batch = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        answer = self._stage.sqs.send_message_batch(**batch | {"QueueUrl": EVENTS})
        start_response("200 OK", [("Content-Type", "application/x-amz-json-1.0")])
        return [json.dumps(answer).encode()]


def _chunks_of(stream: IO[bytes]) -> Iterator[bytes]:
    """Undoes what the gateway undoes, and a server of WSGI does not: exporters in Node do it."""
    while size := int(stream.readline(), 16):
        yield stream.read(size)
        stream.readline()


@contextmanager
def _model() -> Iterator[Mapping[str, str]]:
    """The scripted model, in a process of its own; the variables that lead to it."""
    program = ROOT / "examples" / "integrations" / "stub_model.py"
    command = [sys.executable, str(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            assert process.stdout is not None
            told = process.stdout.readline().removeprefix("export ").split()
            yield dict(pair.split("=", 1) for pair in told)
        finally:
            process.terminate()
