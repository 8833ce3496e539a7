"""Texts of agents that are out to harm are shown, and nothing else comes of them.

That no script ran, no dialog came up and nothing was asked of others, every tab checks at its end.
"""

from playwright.sync_api import expect

from tests.page.conftest import Visit
from tests.page.runs import EVIL_LINE, EVIL_NAME, LONG_LINE

MARKED = EVIL_NAME.replace("\u202e", "RLO").replace("\u202c", "PDF")
"""How the page shows it: what would reorder the line is seen instead of obeyed."""

ELEMENTS = (
    "() => [...document.querySelectorAll('#page img, #page script, #page b[onclick]')].length"
)
WIDTH = "() => document.documentElement.scrollWidth - innerWidth"


def test_names_errors_logs_and_results_are_inert_in_every_view(visit: Visit) -> None:
    tab = visit("odd")
    tab.open("#/runs")
    card = tab.page.get_by_role("article").filter(has_text="hostile")
    expect(card.get_by_role("heading")).to_have_text(MARKED)
    expect(card.locator(".error")).to_have_text(EVIL_LINE)
    card.locator("summary").click()
    expect(card.locator(".call-list")).to_contain_text(EVIL_LINE[:24])  # where a preview is cut
    for view in ("timeline", "tree", "calls", "phases", "result", "logs"):
        tab.open(f"#/runs/hostile?tab={view}")
        expect(tab.page.get_by_role("tabpanel")).not_to_be_empty()
        expect(tab.page.get_by_role("heading", level=1)).to_have_text(MARKED)
        expect(tab.page.locator(".skeletons")).to_have_count(0)
        assert tab.page.evaluate(ELEMENTS) == 0
        assert tab.page.evaluate(WIDTH) <= 0
    expect(tab.page.locator(".logs")).to_contain_text(EVIL_LINE)
    assert "\u202e" not in tab.page.title()


def test_a_payload_full_of_tricks_is_shown_as_it_is(visit: Visit) -> None:
    tab = visit("odd")
    tab.open("#/runs/hostile?tab=calls")
    tab.page.locator("table.calls").get_by_role("link", name=MARKED).click()
    drawer = tab.page.get_by_role("dialog")
    messages = drawer.locator(".message")
    expect(messages).to_have_count(3)
    expect(messages.nth(0)).to_contain_text(MARKED)
    expect(messages.nth(0)).to_contain_text(EVIL_LINE)
    expect(messages.nth(2)).to_contain_text("aU+0000bU+001B[31mredU+007F\ufffd LRIhiddenPDI")
    drawer.get_by_role("tab", name="JSON").click()
    expect(drawer.locator(".json").last).to_contain_text("__proto__")
    drawer.get_by_role("tab", name="Raw").click()
    expect(drawer.locator(".long.code")).to_contain_text(EVIL_LINE)
    assert tab.page.evaluate("() => ({}).polluted") is None
    assert tab.page.evaluate(ELEMENTS) == 0
    assert tab.page.locator("a[href^='javascript']").count() == 0


def test_a_line_of_a_megabyte_is_short_at_first_and_whole_on_request(visit: Visit) -> None:
    tab = visit("odd")
    tab.open("#/runs/hostile?tab=calls")
    tab.page.get_by_role("link", name="one long line").click()
    text = tab.page.get_by_role("dialog").locator(".message .long")
    expect(text).to_be_visible()
    length = "(element) => element.querySelectorAll('.chunk').length && element.textContent.length"
    assert text.evaluate(length) < 10_000
    text.get_by_role("button", name="Show all 1,048,576 characters").click()
    expect(text.get_by_role("button", name="Show less")).to_be_attached()
    assert text.evaluate(length) - len("Show less") == len(LONG_LINE)
    assert tab.page.evaluate(WIDTH) <= 0
