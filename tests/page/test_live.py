"""What changes while somebody looks. The browser's clock is moved on: nobody waits for polls."""

import time

import pytest
from playwright.sync_api import expect

from local import waiting
from local.stage import Stage
from tests import build
from tests.e2e.http import DeployedApi
from tests.e2e.pipeline import Pipeline
from tests.page.browser import Visitor
from tests.page.conftest import WITHIN_S, ApiOf, Visit

TURN = """(how) => {
  Object.defineProperty(document, "visibilityState", { value: how, configurable: true });
  document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
}"""
RUN = "live-run"


@pytest.fixture
def running(filled: Stage) -> Pipeline:
    """A run that began a moment ago and has one call."""
    pipeline = Pipeline(filled, RUN)
    begun = build.started(time.time_ns(), "live")
    pipeline.send(pipeline.body(begun, build.step(1, phase="first")))
    return pipeline


def counted(api: DeployedApi, calls: int) -> None:
    """Return once the API tells of so many calls of the run."""

    def enough() -> bool | None:
        answer = api.get(f"/pipeline-runs/{RUN}")
        totals = answer.json.get("totals") or {}
        return True if totals.get("agents_total") == calls else None

    waiting.until(enough, WITHIN_S, f"{calls} calls were not counted")


def asked(tab: Visitor) -> int:
    return sum("/api/" in request for request in tab.asked)


def test_a_running_run_grows_and_ends_before_ones_eyes(
    running: Pipeline, visit: Visit, api: ApiOf
) -> None:
    counted(api("acme"), 1)
    tab = visit("acme")
    tab.page.clock.install()
    tab.open(f"#/runs/{RUN}?tab=calls")
    rows = tab.page.locator("table.calls")
    status = tab.page.locator(".run-header .status")
    expect(rows).to_have_attribute("aria-rowcount", "2")
    expect(status).to_have_text("running")

    running.send(running.body(build.step(2, status="failed"), build.step(3), build.step(4)))
    counted(api("acme"), 4)
    tab.page.clock.fast_forward("01:00")
    expect(rows).to_have_attribute("aria-rowcount", "5")
    shown = tab.figures(tab.page.locator(".run-header"))
    assert (shown["Calls"], shown["Failed"]) == ("4", "1")

    running.send(running.body(build.ended(time.time_ns())))
    running.summarised(4)
    tab.page.clock.fast_forward("01:00")
    expect(status).to_have_text("succeeded")
    expect(tab.page.get_by_text("Live totals")).to_have_count(0)


def test_nobody_is_asked_while_the_tab_is_hidden(visit: Visit) -> None:
    tab = visit()
    tab.page.clock.install()
    tab.open("#/runs")
    expect(tab.page.get_by_role("article").first).to_be_visible()
    with tab.page.expect_response("**/api/**"):
        tab.page.clock.fast_forward("00:31")
    tab.page.evaluate(TURN, "hidden")
    before = asked(tab)
    tab.page.clock.fast_forward("30:00")
    tab.page.evaluate("() => fetch('icon.svg')")  # what was asked before it is known by now
    assert asked(tab) == before
    with tab.page.expect_response("**/api/**"):
        tab.page.evaluate(TURN, "visible")


def test_polls_grow_rarer_while_nothing_changes(visit: Visit) -> None:
    tab = visit()
    tab.page.clock.install()
    tab.open("#/runs")
    expect(tab.page.get_by_role("article").first).to_be_visible()
    for seconds in (3, 5, 7, 11):
        with tab.page.expect_response("**/api/**"):
            tab.page.clock.fast_forward(seconds * 1_000)
    before = asked(tab)
    tab.page.clock.fast_forward("00:08")
    tab.page.evaluate("() => fetch('icon.svg')")
    assert asked(tab) == before
