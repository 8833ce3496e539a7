"""A headless Chromium, and one visitor of the page with everything that went wrong for them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Locator,
    Request,
    Response,
    expect,
    sync_playwright,
)

from local.paths import ROOT

_FLAGS: Final = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
_PATIENCE_MS: Final = 15_000
"""For what will come, on a machine that does much else meanwhile."""

_REFUSALS: Final = """
window.refusals = [];
addEventListener("securitypolicyviolation", (event) =>
  window.refusals.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""
_KEY: Final = "if (origin !== 'null') sessionStorage.setItem('runtally.key', '{key}')"


def find_browser() -> str:
    """The path of a Chromium that runs, installed when there is none."""
    found = subprocess.run(  # noqa: S603 - our own script
        [ROOT / "scripts" / "browser"],
        env=os.environ | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


@contextmanager
def launched() -> Iterator[Browser]:
    expect.set_options(timeout=_PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Visitor:
    """A tab of a context of its own at the page. `troubles` are what no visit may cause: requests
    to elsewhere, refusals of the CSP, errors of scripts, dialogs, answers that were not `expected`.
    """

    def __init__(self, browser: Browser, address: str, key: str = "", **context: Any) -> None:
        settings = {
            "viewport": {"width": 1280, "height": 900},
            "locale": "en-GB",
            "timezone_id": "Europe/Berlin",
            "reduced_motion": "reduce",
            **context,
        }
        self.address = address
        self.troubles: list[str] = []
        self.expected: set[int] = set()
        self.asked: list[str] = []
        self.context = browser.new_context(**settings)
        self.context.set_default_timeout(_PATIENCE_MS)
        self.context.add_init_script(_REFUSALS)
        if key:
            self.context.add_init_script(_KEY.format(key=key))
        self.page = self.context.new_page()
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.troubles.append(f"script: {error}"))
        self.page.on("request", self._on_request)
        self.page.on("response", self._on_response)
        self.page.on("dialog", self._on_dialog)

    def open(self, where: str) -> None:
        """Load the page anew at an address of its own, such as `#/runs`."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}/{where}")

    def go(self, where: str) -> None:
        """Change the address as a link of the page does."""
        self.page.evaluate("(where) => { location.hash = where; }", where)

    @property
    def where(self) -> str:
        return self.page.url.removeprefix(f"{self.address}/")

    def figures(self, within: Locator) -> dict[str, str]:
        """The names and texts of the first list of figures."""
        totals = within.locator("dl.totals").first
        totals.wait_for()
        names = totals.locator("dt").all_inner_texts()
        return dict(zip(names, totals.locator("dd").all_inner_texts(), strict=True))

    def leave(self) -> list[str]:
        """Close the tab; everything that went wrong, refusals of the CSP included."""
        refusals: list[str] = self.page.evaluate("() => window.refusals ?? []")
        self.context.close()
        return [*self.troubles, *refusals]

    def _on_console(self, message: ConsoleMessage) -> None:
        # The browser's own word on answers that were no success; `_on_response` judges those.
        if message.type in {"error", "warning"} and "Failed to load" not in message.text:
            self.troubles.append(f"console: {message.text}")

    def _on_request(self, request: Request) -> None:
        self.asked.append(f"{request.method} {request.url.removeprefix(self.address)}")
        if not request.url.startswith((f"{self.address}/", "data:", "blob:")):
            self.troubles.append(f"elsewhere: {request.url}")

    def _on_response(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self.expected:
            self.troubles.append(f"{response.status}: {response.url}")

    def _on_dialog(self, dialog: Any) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()
