"""A run and its calls, each figure as the API has it, to the last digit."""

import json
from typing import Any

from playwright.sync_api import expect

from tests.e2e.http import DeployedApi
from tests.page import shown
from tests.page.browser import Visitor
from tests.page.conftest import ApiOf, Visit
from tests.page.runs import TINY


def newest(api: DeployedApi, pipeline: str) -> Any:
    """All that the API tells of the pipeline's newest run."""
    (run, *_) = api.get("/pipeline-runs", pipeline=pipeline).json["runs"]
    return api.get(f"/pipeline-runs/{run['run_id']}").json


def test_the_run_of_1500_calls_shows_the_totals_of_the_api(visit: Visit, api: ApiOf) -> None:
    found = newest(api("demo"), "wide")
    totals = found["totals"]
    assert totals["agents_total"] == len(found["calls"]) == 1_500
    tab = visit()
    tab.open("#/runs")
    tab.page.get_by_role("link", name="wide", exact=True).click()
    expect(tab.page.locator(".timeline canvas")).to_be_visible()
    assert tab.where == f"#/runs/{found['run']['run_id']}"
    assert tab.figures(tab.page.locator(".run-header")) == {
        "Calls": "1,500",
        "Failed": f"{totals['failed_total']:,}",
        "Cost": shown.cost(totals["cost_usd_total"], totals["cost_unknown_total"], 1_500),
        "Input tokens": f"{totals['input_tokens']:,}",
        "Output tokens": f"{totals['output_tokens']:,}",
        "Cached": f"{totals['cached_tokens']:,}",
    }
    tab.page.get_by_role("tab", name="Calls").click()
    expect(tab.page.locator("table.calls")).to_have_attribute("aria-rowcount", "1501")
    tab.page.get_by_label("Status").select_option("failed")
    expect(tab.page.locator("output")).to_contain_text(f"{totals['failed_total']} of 1,500 calls")


def test_the_table_of_phases_is_the_apis(visit: Visit, api: ApiOf) -> None:
    found = newest(api("demo"), "research")
    tab = visit()
    tab.open(f"#/runs/{found['run']['run_id']}?tab=phases")
    rows = tab.page.locator("[aria-label='Table of phases'] tbody tr")
    entries = found["phases"]["entries"]
    expect(rows).to_have_count(len(entries))
    for entry, row in zip(entries, rows.all(), strict=True):
        cells = [row.locator("th").inner_text(), *row.locator("td").all_inner_texts()]
        assert cells[:3] == [entry["phase"], f"{entry['calls']}", f"{entry['failed']}"]
        assert cells[3] == shown.cost(entry["cost_usd"], entry["cost_unknown"], entry["calls"])
        assert cells[4:7] == [
            f"{entry[f'{kind}_tokens']:,}" for kind in ("input", "output", "cached")
        ]
        titles = row.locator("[title$=' ms']").evaluate_all("(them) => them.map((it) => it.title)")
        times = [entry[f"{name}_ms"] for name in ("wall", "p50", "p95", "max")]
        assert [float(title.removesuffix(" ms")) for title in titles] == times
        assert cells[11:] == [", ".join(entry["agents"]), ", ".join(entry["models"])]


def test_a_calls_payload_is_a_conversation_and_as_it_was_sent(visit: Visit, api: ApiOf) -> None:
    found = newest(api("demo"), "research")
    call = next(c for c in found["calls"] if c["kind"] == "model" and c.get("payload_bytes"))
    run_id, step_id = found["run"]["run_id"], call["step_id"]
    payload = api("demo").get(f"/pipeline-runs/{run_id}/calls/{step_id}/payload").json["payload"]
    tab = visit()
    tab.open(f"#/runs/{run_id}/calls/{step_id}")
    drawer = tab.page.get_by_role("dialog")
    messages = drawer.locator(".message")
    expect(messages).to_have_count(len(payload))
    for message, item in zip(payload, messages.all(), strict=True):
        expect(item.locator("h4")).to_have_text(message["role"])
        expect(item).to_contain_text(message["content"].strip().splitlines()[0])
    drawer.get_by_role("tab", name="Raw").click()
    assert json.loads(drawer.locator(".long.code").inner_text()) == payload
    with tab.page.expect_download() as download:
        drawer.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == f"{step_id}.json"
    assert json.loads(download.value.path().read_text()) == payload


def test_next_to_nothing_has_its_digits_and_unknown_is_said(visit: Visit, api: ApiOf) -> None:
    tab = visit("odd")
    tab.open("#/runs/costs?tab=calls")
    rows = tab.page.locator("table.calls tbody tr")
    expect(rows).to_have_count(2)
    assert [row.locator("td").last.inner_text() for row in rows.all()] == [f"${TINY:f}", "unknown"]
    header = tab.page.locator(".run-header")
    assert tab.figures(header)["Cost"] == f"${TINY:f} + unknown for 1 call"
    tab.page.get_by_role("tab", name="Phases").click()
    cost = tab.page.locator("[aria-label='Table of phases'] tbody td:nth-of-type(3)")
    expect(cost).to_have_text([f"${TINY:f}", "unknown for 1 call"])


def test_a_run_a_phase_a_tab_and_a_call_have_addresses(visit: Visit, api: ApiOf) -> None:
    found = newest(api("demo"), "bugfix")
    run_id = found["run"]["run_id"]
    phase = found["phases"]["entries"][-1]
    call = found["calls"][3]
    tab = visit()
    tab.open(f"#/runs/{run_id}/phases/{phase['phase']}?tab=calls")
    expect(tab.page.locator("output")).to_contain_text(f"{phase['calls']} of ")
    expect(tab.page.locator("table.calls tbody tr")).to_have_count(phase["calls"])
    tab.open(f"#/runs/{run_id}/calls/{call['step_id']}?tab=tree")
    expect(title_of(tab)).to_have_text(call["name"])
    tab.page.get_by_role("button", name="Close", exact=True).click()
    expect(tab.page.get_by_role("tree")).to_be_visible()
    assert tab.where == f"#/runs/{run_id}?tab=tree"
    tab.page.go_back()
    tab.open(f"#/runs/{run_id}?tab=logs")
    logged = [line for entry in found["logs"]["entries"] for line in entry["lines"]]
    expect(tab.page.locator(".logs")).to_contain_text(logged[0])


def title_of(tab: Visitor) -> Any:
    return tab.page.get_by_role("dialog").get_by_role("heading", level=2)
