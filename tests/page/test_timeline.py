"""The canvas of the timeline, which has nothing to ask for by name: by pixels, as laid out in
web/src/run/timeline-picture.ts."""

from typing import Any, Final

from playwright.sync_api import Locator, expect

from tests.page.browser import Visitor
from tests.page.conftest import ApiOf, Visit
from tests.page.test_run import newest

AXIS: Final = 28
TITLE: Final = 22
LANE: Final = 18
BOTTOM: Final = 4
SCROLL: Final = """(scroller) => {
  scroller.scrollTop = scroller.scrollHeight;
  return [scroller.scrollTop, scroller.clientHeight];
}"""


def opened(visit: Visit, api: ApiOf, **context: Any) -> tuple[Visitor, Locator]:
    """The run of `research`: two lanes of `plan`, 17 of `search`, two of `write`."""
    tab = visit(**context)
    tab.open(f"#/runs/{newest(api('demo'), 'research')['run']['run_id']}")
    timeline = tab.page.locator(".timeline")
    timeline.locator("canvas").wait_for()
    return tab, timeline


def test_a_call_says_what_it_is_and_opens_at_a_click(visit: Visit, api: ApiOf) -> None:
    tab, timeline = opened(visit, api)
    first_of_search = AXIS + TITLE + 2 * LANE + TITLE + LANE / 2
    timeline.hover(position={"x": 600, "y": first_of_search})
    expect(tab.page.locator(".tip")).to_contain_text("search all")
    timeline.click(position={"x": 600, "y": first_of_search})
    expect(tab.page.get_by_role("dialog")).to_contain_text("search all")


def test_the_canvas_is_as_high_as_what_is_seen_and_shows_what_is_scrolled_to(
    visit: Visit, api: ApiOf
) -> None:
    tab, timeline = opened(visit, api, viewport={"width": 1280, "height": 480})
    top, height = timeline.evaluate(SCROLL)
    assert top > LANE
    box = timeline.locator("canvas").bounding_box()
    assert box is not None
    assert box["height"] == height
    last_but_one_of_search = height - BOTTOM - 2 * LANE - TITLE - LANE - LANE / 2
    timeline.hover(position={"x": 800, "y": last_but_one_of_search})
    expect(tab.page.locator(".tip")).to_contain_text("search type annotations")


def test_the_wheel_scrolls(visit: Visit, api: ApiOf) -> None:
    tab, timeline = opened(visit, api, viewport={"width": 1280, "height": 480})
    timeline.hover(position={"x": 600, "y": AXIS + TITLE + LANE / 2})
    tab.page.mouse.wheel(0, 3 * LANE)
    tab.page.wait_for_function("document.querySelector('.timeline').scrollTop > 0")
