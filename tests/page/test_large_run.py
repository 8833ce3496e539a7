"""33,000 calls: all of them there, few of them in the document."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from local.page import PageServer
from tests.page import shown
from tests.page.browser import Visitor
from tests.page.large_run import CALLS, RUN, LargeRun, large_run

MOST_NODES = 2_000
NODES = "() => document.querySelectorAll('*').length"
WATCH = """
window.told = [];
new MutationObserver(() => {
  const text = document.querySelector(".progress span")?.textContent;
  if (text && text !== window.told.at(-1)) window.told.push(text);
}).observe(document, { subtree: true, childList: true, characterData: true });
"""
SCROLL_TO = """(scroller, part) => {
  scroller.scrollTop = part * (scroller.scrollHeight - scroller.clientHeight);
}"""


@pytest.fixture(scope="module")
def run() -> Iterator[LargeRun]:
    with large_run() as run:
        yield run


@pytest.fixture
def tab(run: LargeRun, browser: Browser) -> Iterator[Visitor]:
    with PageServer(run.api_url) as server:
        tab = Visitor(browser, server.address, run.client.key)
        yield tab
        assert tab.leave() == []


def test_a_run_of_33000_calls_comes_whole_and_stays_light(run: LargeRun, tab: Visitor) -> None:
    tab.context.add_init_script(WATCH)
    tab.open("#/runs")
    tab.page.get_by_role("link", name=RUN.run_id, exact=True).click()
    expect(tab.page.locator(".timeline canvas").first).to_be_visible(timeout=60_000)
    expect(tab.page.locator(".progress")).to_have_count(0)
    told = tab.page.evaluate("() => window.told")
    assert told
    assert all(text.endswith(f" of {CALLS:,} calls") for text in told)
    assert tab.page.locator(".timeline *").count() < 10

    answer = run.client.get(f"/pipeline-runs/{RUN.run_id}").json
    totals = answer["totals"]
    figures = tab.figures(tab.page.locator(".run-header"))
    assert figures["Calls"] == f"{totals['agents_total']:,}" == f"{CALLS:,}"
    assert figures["Failed"] == f"{totals['failed_total']:,}"
    assert figures["Cost"] == shown.cost(
        totals["cost_usd_total"], totals["cost_unknown_total"], CALLS
    )
    last_of = {"Tree": f"#line-{CALLS - 1}", "Calls": f"tr[aria-rowindex='{CALLS + 1}']"}
    for name, last in last_of.items():
        tab.page.get_by_role("tab", name=name).click()
        tab.page.locator(".scroller").evaluate(SCROLL_TO, 0.5)
        assert tab.page.evaluate(NODES) < MOST_NODES
        tab.page.locator(".scroller").evaluate(SCROLL_TO, 1)
        expect(tab.page.locator(last)).to_contain_text(f"write report page {CALLS - 1}")
        assert tab.page.evaluate(NODES) < MOST_NODES
    tab.page.locator(last_of["Calls"]).get_by_role("link").click()
    expect(tab.page.get_by_role("dialog")).to_be_visible()
    tab.page.keyboard.press("Escape")
    tab.page.get_by_label("Search").fill("TimeoutError")
    expect(tab.page.locator("output")).to_contain_text(f"{CALLS // 100:,} of {CALLS:,} calls")
