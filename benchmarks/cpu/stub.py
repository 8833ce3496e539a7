"""S3 and DynamoDB that accept whatever comes and answer at once, in a process of their own."""

import multiprocessing
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

import msgspec

from functions.adapters.attributes import to_attributes
from functions.core import items
from functions.core.model import Order, Run, Start
from tests import build

_RUN: Final = Run(build.RUN, 1, Start(Order(0, ""), pipeline="research"), expires_at=2**33)
"""What stands in the table: open, begun before and kept longer than any message says."""

_ANSWERS: Final = {
    "GetItem": msgspec.json.encode({"Item": to_attributes(items.run_item(_RUN))}),
    "PutItem": b'{"ConsumedCapacity":{"CapacityUnits":1.0,"TableName":"t"}}',
    "BatchWriteItem": b'{"ConsumedCapacity":[],"UnprocessedItems":{}}',
}
_REQUEST_ID: Final = "4442587FB7D0A2F9QBGCFNXZHRQMJ9VSNBD4G8T5AAAAAAAAAAAA"


@contextmanager
def answering() -> Iterator[str]:
    """The address of both, for as long as the context lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answering)
    process = multiprocessing.get_context("fork").Process(target=server.serve_forever, daemon=True)
    process.start()
    server.server_close()  # the child's is another
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        process.kill()
        process.join()


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # one packet an answer

    def handle_expect_100(self) -> bool:
        accepted = super().handle_expect_100()
        self.wfile.flush()
        return accepted

    def do_PUT(self) -> None:
        self._read()
        self._answer(b"", {"x-amz-request-id": _REQUEST_ID, "ETag": f'"{0:032x}"'})

    def do_POST(self) -> None:
        self._read()
        body = _ANSWERS[self.headers["X-Amz-Target"].rpartition(".")[2]]
        headers = {
            "x-amzn-RequestId": _REQUEST_ID,
            "x-amz-crc32": str(zlib.crc32(body)),
            "Content-Type": "application/x-amz-json-1.0",
        }
        self._answer(body, headers)

    def _read(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))

    def _answer(self, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(200)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name above
        """Nothing to say."""
