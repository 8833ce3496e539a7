"""The Pipeline page on this machine: the built page and the API of a stage on one address.

Vite's own preview server, as web/vite.config.ts sets it up. It reads the page from its folder at
every request, so that a page built anew is there at once.
"""

import os
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Final, Self
from urllib.parse import urlsplit

from cdk.page import WEB, PageBuildError, build_page
from local.commands import LocalStageError
from local.paths import LOGS
from local.process_group import kill_group
from local.serving import HOST, Serving, on_a_free_port

PORT: Final = 8400
"""Where the page of `runtally up` is unless somebody else is there, so that a bookmark holds."""

LAST_LOG: Final = LOGS / "page.txt"
"""What the server that was stopped last had to say."""

_VITE: Final = WEB / "node_modules" / "vite" / "bin" / "vite.js"
_LEASH: Final = "data:text/javascript,process.stdin.on('end',()=>process.exit()).resume()"
_WITHOUT: Final = "`runtally up --no-page` starts a stage without its page."
_BUILD_ADVICE: Final = f"If it is a download: see whether npm's registry can be reached. {_WITHOUT}"


@dataclass(frozen=True, slots=True)
class ServedPage:
    """Where a page is served, and by which process."""

    address: str
    pid: int

    def answers(self) -> bool:
        """Whether that very process answers there: ports and process ids are given anew."""
        with closing(HTTPConnection(urlsplit(self.address).netloc, timeout=2)) as server:
            try:
                server.request("HEAD", "/")
                return server.getresponse().headers["X-Runtally-Page"] == str(self.pid)
            except (OSError, HTTPException):
                return False

    def end(self) -> None:
        """End its server, unless that has ended already."""
        if self.answers():
            kill_group(self.pid)


class PageServer:
    """The page, built, and the API at `api_url`, on one address. Stops at the end of a `with`.

    Unless it is `detached`, it also ends with this process, even when that is killed. `port` is
    tried first. Raises LocalStageError when the page cannot be built or served.
    """

    def __init__(self, api_url: str, *, port: int = 0, detached: bool = False) -> None:
        self._api_url = api_url
        self._detached = detached
        build()
        LOGS.mkdir(parents=True, exist_ok=True)
        on_a_free_port(self._start, port)

    def _start(self, port: int) -> None:
        self.log = LOGS / f"page-{port}.txt"
        leash = () if self._detached else ("--import", _LEASH)
        self._serving = Serving(
            ["node", *leash, _VITE, "preview", "--host", HOST, "--port", str(port), "--strictPort"],
            cwd=WEB,
            env=os.environ | {"RUNTALLY_API_URL": self._api_url},
            log=self.log,
            detached=self._detached,
        )
        self.page = ServedPage(f"http://{HOST}:{port}", self._serving.pid)
        self._serving.wait_until(self.page.answers, "The page's server did not start.", _WITHOUT)

    @property
    def address(self) -> str:
        return self.page.address

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the server. To be called once."""
        self._serving.stop()
        self.log.replace(LAST_LOG)


def build() -> None:
    """Have the page built, unless it is up to date."""
    try:
        build_page()
    except PageBuildError as error:
        raise LocalStageError(f"The page could not be built: {error}", _BUILD_ADVICE) from None
