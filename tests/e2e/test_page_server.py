"""The page and the API on one address: what passes through is what the API says."""

import gzip
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cdk.page import HEADERS
from local import waiting
from local.emulator import Access
from local.page import PageServer, ServedPage
from local.process_group import group_lives
from local.serving import HOST, free_port
from local.stage import Running, Stage
from tests import otlp
from tests.e2e.http import DeployedApi, key_of

pytestmark = pytest.mark.xdist_group("guarded stage")

RUNTALLY = Path(sys.executable).parent / "runtally"
LARGE = bytes(range(256)) * 20_000


@pytest.fixture(scope="module")
def server(guarded_stage: Stage) -> Iterator[PageServer]:
    with PageServer(guarded_stage.api_url) as server:
        yield server


@pytest.fixture(scope="module")
def direct(guarded_stage: Stage) -> DeployedApi:
    return DeployedApi(guarded_stage.api_url, key_of(guarded_stage, "acme"))


@pytest.fixture(scope="module")
def through(server: PageServer, direct: DeployedApi) -> DeployedApi:
    return DeployedApi(server.address, direct.key)


def ask(
    address: str, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    with closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)) as connection:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, names)
        answer = connection.getresponse()
        return answer, answer.read()


def test_the_page_comes_with_its_headers(server: PageServer) -> None:
    answer, index = ask(server.address, "GET", "/")
    assert answer.status == 200
    assert b"<title>runtally</title>" in index
    for name, value in json.loads(HEADERS.read_text()).items():
        assert answer.headers[name] == value
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    script = index.partition(b'src=".')[2].partition(b'"')[0].decode()
    answer, content = ask(server.address, "GET", script, Accept_Encoding="gzip")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(content)
    assert ask(server.address, "GET", "/runs")[0].status == 404


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/pipeline-runs?limit=5", 200),
        ("GET", "/openapi.json", 200),
        ("GET", "/pipeline-runs?limit=many", 400),
        ("GET", "/pipeline-runs/no%20run", 400),
        ("DELETE", "/insights", 405),
    ],
)
def test_the_api_says_the_same_through_the_page(
    direct: DeployedApi, through: DeployedApi, method: str, path: str, status: int
) -> None:
    shown = through.send(method, path)
    said = direct.send(method, path)
    assert (shown.status, shown.body) == (said.status, said.body)
    assert shown.status == status
    for name in ("content-type", "content-encoding", "cache-control"):
        assert shown.headers.get(name) == said.headers.get(name)


def test_without_a_key_the_api_refuses_through_the_page(server: PageServer) -> None:
    assert DeployedApi(server.address, "").get("/pipeline-runs").status == 401


def test_spans_are_taken_through_the_page(through: DeployedApi) -> None:
    body = gzip.compress(otlp.as_protobuf(otlp.traces(otlp.span(1))))
    headers = {
        "Authorization": f"Bearer {through.key}",
        "Content_Type": "application/x-protobuf",
        "Content_Encoding": "gzip",
    }
    assert ask(through.url, "POST", "/v1/traces", body, **headers)[0].status == 200


class Upstream(BaseHTTPRequestHandler):
    """An API that answers with what it gets, or breaks off amid its answer."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.path.endswith("/api/broken"):
            self.wfile.write(body[:1000])
            self.close_connection = True
        else:
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Not to the terminal."""


@contextmanager
def upstream() -> Iterator[str]:
    with ThreadingHTTPServer((HOST, 0), Upstream) as api:
        thread = threading.Thread(target=api.serve_forever)
        thread.start()
        try:
            yield f"http://{HOST}:{api.server_port}/stage/$default"
        finally:
            api.shutdown()
            thread.join()


def test_large_bodies_pass_and_an_answer_that_breaks_off_ends() -> None:
    with upstream() as api, PageServer(api) as server:
        assert ask(server.address, "POST", "/api/same", LARGE)[1] == LARGE
        with pytest.raises(http.client.IncompleteRead):
            ask(server.address, "POST", "/api/broken", LARGE)


def test_an_api_that_is_down_is_told_and_two_pages_have_two_ports() -> None:
    port = free_port()
    api = f"http://{HOST}:{free_port()}"
    with PageServer(api, port=port) as one, PageServer(api, port=port) as other:
        assert one.address == f"http://{HOST}:{port}" != other.address
        assert not replace(one.page, pid=other.page.pid).answers()
        answer, text = ask(one.address, "GET", "/api/v1/pipeline-runs")
        assert (answer.status, b"runtally up" in text) == (502, True)
    assert not one.page.answers()
    assert not group_lives(one.page.pid)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_the_process_that_started_it(how: signal.Signals) -> None:
    program = (
        "import signal; from local.page import PageServer; server = PageServer('http://nowhere');"
        "print(server.page.pid, flush=True); signal.pause()"
    )
    owner = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    )
    with owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert group_lives(pid)
        os.kill(owner.pid, how)
    waiting.until(lambda: None if group_lives(pid) else True, 10, "The page's server did not end")


@pytest.fixture
def stand_in() -> Iterator[subprocess.Popen[bytes]]:
    """A process to be ended in place of the emulator, which other tests still need."""
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:  # noqa: S607
        yield process
        process.kill()


def test_up_serves_the_page_again_when_it_died_and_down_ends_it(
    guarded_stage: Stage, stand_in: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    state = tmp_path / "state.json"
    assert isinstance(guarded_stage.cloud, Access)
    Running(guarded_stage, guarded_stage.cloud, stand_in.pid, tmp_path / "folder").save(state)
    assert "  open " not in runtally("up", "--no-page", state=state)
    first = page_of(runtally("up", state=state), state)
    assert page_of(runtally("up", state=state), state) == first
    os.killpg(first.pid, signal.SIGKILL)
    second = page_of(runtally("up", state=state), state)
    assert "is down" in runtally("down", state=state)
    assert not group_lives(second.pid)
    assert not second.answers()
    assert stand_in.wait(10) == -signal.SIGKILL


def page_of(said: str, state: Path) -> ServedPage:
    """The page that `up` left, which it named, and which answers."""
    running = Running.load(state)
    assert running is not None
    assert running.page is not None
    assert running.page.address in said
    assert "runtally keys create" in said
    assert running.page.answers()
    return running.page


def runtally(*arguments: str, state: Path) -> str:
    done = subprocess.run(  # noqa: S603 - our own command line
        [RUNTALLY, *arguments],
        env=os.environ | {"RUNTALLY_LOCAL_STATE": str(state)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
