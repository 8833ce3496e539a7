"""Figures of many runs, and two runs side by side: those of the API."""

from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import expect

from tests.page import shown
from tests.page.conftest import ApiOf, Visit


def test_the_table_by_pipeline_and_phase_is_the_apis(visit: Visit, api: ApiOf) -> None:
    tab = visit()
    tab.open("#/insights?range=24h")
    expect(tab.page.locator(".trend canvas")).to_be_visible()
    (asked,) = [request for request in tab.asked if "/insights" in request]
    found = api("demo").get("/insights", **dict(parse_qsl(urlsplit(asked).query))).json
    wanted = [
        figures for pipeline in found["pipelines"] for figures in [pipeline, *pipeline["phases"]]
    ]
    rows = tab.page.locator("[aria-label='Figures by pipeline and phase'] tbody tr")
    expect(rows).to_have_count(len(wanted))
    for figures, row in zip(wanted, rows.all(), strict=True):
        named = figures.get("phase") or figures["pipeline"]
        assert row.locator("th bdi").inner_text() == named
        cells = row.locator("td").all_inner_texts()
        assert cells[:3] == [f"{figures[name]:,}" for name in ("runs", "calls", "failed")]
        assert cells[3] == shown.cost(
            figures["cost_usd"], figures["cost_unknown"], figures["calls"]
        )
        assert cells[4:6] == [f"{figures[f'{kind}_tokens']:,}" for kind in ("input", "output")]


def test_the_figure_that_is_drawn_and_the_range_stand_in_the_address(visit: Visit) -> None:
    tab = visit()
    tab.open("#/insights")
    tab.page.get_by_role("link", name="24 hours").click()
    tab.page.get_by_role("button", name="Failed calls").click()
    expect(tab.page.get_by_role("img", name="Failed calls by hour")).to_be_visible()
    assert tab.where == "#/insights?range=24h&metric=failed"
    tab.page.locator("tbody").get_by_role("link", name="bugfix").click()
    expect(tab.page.locator(".trend .legend li")).to_have_text(["fix", "set up"])


def test_two_runs_are_compared_as_the_api_does(visit: Visit, api: ApiOf) -> None:
    runs = api("demo").get("/pipeline-runs", pipeline="bugfix").json["runs"]
    a, b = (run["run_id"] for run in runs)
    found = api("demo").get("/insights", view="compare", a=a, b=b).json
    tab = visit()
    tab.open(f"#/runs/{a}")
    tab.page.locator(".run-header").get_by_role("link", name="Compare").click()
    expect(tab.page.get_by_label("Run b")).to_have_value(b)
    tab.page.get_by_role("button", name="Compare").click()
    rows = tab.page.locator("table.comparison tbody tr")
    expect(rows).to_have_count(1 + len(found["phases"]))
    sides = [found[side]["totals"] for side in "ab"]
    calls, failed, cost = (cell.inner_text() for cell in rows.first.locator("td").all()[:3])
    changed = found["change"]
    assert parts(calls) == [
        *(f"{s['agents_total']}" for s in sides),
        shown.change(changed["calls"]),
    ]
    assert parts(failed) == [
        *(f"{s['failed_total']}" for s in sides),
        shown.change(changed["failed"]),
    ]
    assert parts(cost) == [
        *(
            shown.cost(s["cost_usd_total"], s["cost_unknown_total"], s["agents_total"])
            for s in sides
        ),
        shown.change(changed["cost_usd"]),
    ]


def parts(cell: str) -> list[str]:
    """From, to and change."""
    before, _, rest = cell.replace("becomes", "").partition("→")
    after, _, change = rest.strip().rpartition("\n")
    return [before.strip(), after.strip(), change]
