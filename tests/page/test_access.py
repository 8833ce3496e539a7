"""For whoever has no mouse, no good eyes, a dark room or a small screen."""

from typing import Any, Final, Literal

import pytest
from playwright.sync_api import Locator, expect

from cdk.page import WEB
from tests.page.browser import Visitor
from tests.page.conftest import ApiOf, Visit

AXE: Final = WEB / "node_modules" / "axe-core" / "axe.min.js"
FOUND: Final = """async (rules) => {
  const { violations } = await axe.run(rules.length ? { runOnly: rules } : {});
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).slice(0, 3).join(" ")}`);
}"""
HAS_FOCUS: Final = "(element) => element === document.activeElement"
INSIDE: Final = """() => {
  const focused = document.activeElement;
  return focused === document.body || focused.closest("dialog") !== null;
}"""
BACKGROUND: Final = "() => getComputedStyle(document.documentElement).backgroundColor"
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
WIDTH: Final = "() => document.documentElement.scrollWidth - innerWidth"


@pytest.fixture(scope="session")
def views(api: ApiOf) -> dict[str, str]:
    """The address of every view, and what is there once it is drawn."""
    demo = api("demo")
    a, b = (run["run_id"] for run in demo.get("/pipeline-runs", pipeline="bugfix").json["runs"])
    (call, *_) = (
        call["step_id"]
        for call in demo.get(f"/pipeline-runs/{a}").json["calls"]
        if call["kind"] == "model"
    )
    return {
        "#/runs": "article",
        f"#/runs/{a}": ".timeline canvas",
        f"#/runs/{a}?tab=tree": ".line",
        f"#/runs/{a}?tab=calls": "table.calls",
        f"#/runs/{a}?tab=phases": ".call-list",
        f"#/runs/{a}?tab=logs": ".logs",
        f"#/runs/{a}?tab=result": "[role=tabpanel]",
        f"#/runs/{a}/calls/{call}": "dialog .message",
        "#/insights?range=24h": ".trend canvas",
        f"#/compare?a={a}&b={b}": "table.comparison",
        "#/nonsense": "h1",
    }


def test_axe_finds_nothing_serious_in_any_view_light_or_dark(
    visit: Visit, newcomer: Visit, views: dict[str, str]
) -> None:
    stranger = newcomer()
    stranger.open("#/runs")
    stranger.page.evaluate(AXE.read_text())
    expect(stranger.page.get_by_label("API key")).to_be_visible()
    found = {"sign in": serious(stranger)}
    tab = visit()
    tab.open("#/runs")
    tab.page.evaluate(AXE.read_text())
    for where, drawn in views.items():
        tab.go(where)
        expect(tab.page.locator(drawn).first).to_be_visible()
        found[where] = serious(tab)
    assert {where: what for where, what in found.items() if what} == {}


def serious(tab: Visitor) -> list[str]:
    """Whatever is wrong in light; in dark nothing but colours is different."""
    tab.page.emulate_media(color_scheme="light")
    light: list[str] = tab.page.evaluate(FOUND, [])
    tab.page.emulate_media(color_scheme="dark")
    dark: list[str] = tab.page.evaluate(FOUND, ["color-contrast"])
    return light + dark


def test_dark_is_dark(visit: Visit) -> None:
    tab = visit()
    tab.open("#/runs")
    expect(tab.page.get_by_role("article").first).to_be_visible()
    shades = []
    for scheme in SCHEMES:
        tab.page.emulate_media(color_scheme=scheme)
        shades.append(rgb(tab.page.evaluate(BACKGROUND)))
    light, dark = shades
    assert min(light) > 200
    assert max(dark) < 60


def rgb(colour: str) -> list[int]:
    return [int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]


def test_a_small_screen_never_scrolls_sideways(visit: Visit, views: dict[str, str]) -> None:
    tab = visit(viewport={"width": 375, "height": 812}, has_touch=True)
    tab.open("#/runs")
    for where, drawn in views.items():
        tab.go(where)
        expect(tab.page.locator(drawn).first).to_be_visible()
        assert (where, tab.page.evaluate(WIDTH)) == (where, 0)


def test_keys_alone_open_a_run_and_a_call_and_lead_back(visit: Visit, api: ApiOf) -> None:
    tab = visit()
    tab.open("#/runs?pipeline=research")
    expect(tab.page.get_by_role("article")).to_be_visible()
    go_to(tab, tab.page.get_by_role("link", name="research", exact=True))
    tab.page.keyboard.press("Enter")
    go_to(tab, tab.page.get_by_role("tab", name="Timeline"))
    tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("ArrowRight")
    calls = tab.page.get_by_role("tab", name="Calls")
    expect(calls).to_be_focused()
    expect(calls).to_have_attribute("aria-selected", "true")
    link = tab.page.locator("table.calls tbody a").first
    go_to(tab, link)
    tab.page.keyboard.press("Enter")
    drawer = tab.page.get_by_role("dialog")
    expect(drawer).to_be_visible()
    for _ in range(12):
        tab.page.keyboard.press("Tab")
        assert tab.page.evaluate(INSIDE)
    tab.page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)
    expect(link).to_be_focused()


def test_keys_walk_the_tree(visit: Visit) -> None:
    tab = visit()
    tab.open("#/runs?pipeline=nested")
    tab.page.get_by_role("article").get_by_role("heading").get_by_role("link").click()
    tab.page.get_by_role("tab", name="Tree").click()
    tree = tab.page.get_by_role("tree")
    go_to(tab, tree)
    lines = tree.get_by_role("treeitem")
    all_lines = lines.count()
    folded = tree.locator("[aria-expanded=true]").first
    while folded.get_attribute("aria-selected") != "true":
        tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("ArrowLeft")
    expect(tree.locator("[aria-expanded=false]")).to_have_count(1)
    assert lines.count() < all_lines
    tab.page.keyboard.press("ArrowRight")
    expect(lines).to_have_count(all_lines)
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("dialog")).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(tree).to_be_focused()


def go_to(tab: Visitor, wanted: Locator) -> None:
    """Press Tab until it has the focus."""
    wanted.wait_for()
    for _ in range(80):
        tab.page.keyboard.press("Tab")
        if wanted.evaluate(HAS_FOCUS):
            return
    focused: Any = tab.page.evaluate("() => document.activeElement.outerHTML")
    raise AssertionError(f"Tab does not lead to {wanted}, but to {focused}")
