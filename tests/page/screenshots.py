"""Takes the pictures of the page in docs/pictures anew: `python -m tests.page.screenshots`.

The shipped recordings, sent several times over a day that is always the same, so that a picture
changes only when the page or a recording does.
"""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from local import recordings, replay
from local.page import PageServer
from local.paths import RECORDINGS, ROOT
from local.recordings import Recording
from tests.api import HttpClient, issue_key
from tests.build import SECOND
from tests.memory_stage import MemoryStage
from tests.page.browser import Visitor, launched
from tests.wsgi import WsgiApp, served

PICTURES: Final = ROOT / "docs" / "pictures"
NOW: Final = datetime(2026, 11, 30, 14, 20, tzinfo=UTC)
_NOW_NS: Final = int(NOW.timestamp()) * SECOND
_HOUR: Final = 3_600 * SECOND
_TENANT: Final = "demo"
_TWO_FRAMES: Final = """() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(done)))"""
_SMALL: Final = {"viewport": {"width": 375, "height": 812}, "device_scale_factor": 2}


def main() -> None:
    os.environ.setdefault("POWERTOOLS_METRICS_DISABLED", "true")
    stage = MemoryStage()
    stage.now_ns = _NOW_NS
    for recording in _recorded():
        assert stage.ingest(*recording.messages) == []
    stage.drain()
    stage.dynamodb.settle()
    client = HttpClient(stage, issue_key(stage, _TENANT))
    with (
        served(WsgiApp(client)) as api_url,
        PageServer(api_url) as server,
        launched() as browser,
    ):
        for name, where, drawn, settings in _views(client):
            tab = Visitor(browser, server.address, client.key, **settings)
            _take(tab, PICTURES / name, where, drawn)


def _recorded() -> Iterator[Recording]:
    """Each file's runs four times, hours apart; the newest last."""
    for number, file in enumerate(sorted(RECORDINGS.glob("*.jsonl.gz"))):
        for run in replay.load(file):
            for times in range(4):
                ended = _NOW_NS - times * 5 * _HOUR - number * 17 * 60 * SECOND - 90 * SECOND
                run_id = f"{run.run_id}-{times}" if times else None
                again = replay.addressed(run, _TENANT, run_id)
                messages = tuple(recordings.retime(again.messages, ended))
                yield Recording(again.tenant_id, again.run_id, messages)


def _views(client: HttpClient) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """The name of a picture, its address, all that is there once it is drawn, how it is seen."""
    wide, research, bugfix = (_newest(client, name) for name in ("wide", "research", "bugfix"))
    calls = client.get(f"/pipeline-runs/{bugfix}").json["calls"]
    call = [call["step_id"] for call in calls if call["kind"] == "model"][1]
    yield "page-runs.png", "#/runs", "article", {}
    yield "page-runs-small.png", "#/runs", "article", _SMALL
    yield "page-run.png", f"#/runs/{research}", ".timeline canvas", {}
    yield "page-run-dark.png", f"#/runs/{wide}", ".timeline canvas", {"color_scheme": "dark"}
    yield "page-call.png", f"#/runs/{bugfix}/calls/{call}", ".timeline canvas, .message", {}
    yield "page-phases.png", f"#/runs/{research}?tab=phases", ".call-list", {}
    yield "page-insights.png", "#/insights?range=24h", ".trend canvas", {}


def _newest(client: HttpClient, pipeline: str) -> str:
    run_id: str = client.get("/pipeline-runs", pipeline=pipeline).json["runs"][0]["run_id"]
    return run_id


def _take(tab: Visitor, picture: Path, where: str, drawn: str) -> None:
    tab.page.clock.set_fixed_time(NOW)
    tab.open(where)
    for selector in drawn.split(", "):
        tab.page.locator(selector).first.wait_for()
    tab.page.wait_for_load_state("networkidle")
    tab.page.evaluate(_TWO_FRAMES)
    tab.page.screenshot(path=picture, animations="disabled", caret="hide")
    if troubles := tab.leave():
        raise AssertionError(f"{picture.name}: {troubles}")


if __name__ == "__main__":
    main()
