"""The key: pasted once, kept for the tab, given up when the API refuses it."""

import json

from playwright.sync_api import expect

from tests.page.conftest import ApiOf, Visit

STORES = "() => JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"


def test_a_pasted_key_shows_the_runs_and_stays_in_this_tab_alone(
    newcomer: Visit, api: ApiOf
) -> None:
    key = api("demo").key
    tab = newcomer()
    tab.open("#/runs")
    tab.page.get_by_label("API key").fill(f"  {key} ")
    tab.page.get_by_role("button", name="Show my runs").click()
    expect(tab.page.get_by_role("article").first).to_be_visible()
    assert json.loads(tab.page.evaluate(STORES)) == [{}, {"runtally.key": key}, ""]
    assert tab.context.cookies() == []
    assert not [asked for asked in tab.asked if key in asked]
    assert key not in tab.page.url
    tab.page.reload()
    expect(tab.page.get_by_role("article").first).to_be_visible()

    other = newcomer()
    other.open("#/runs")
    expect(other.page.get_by_role("heading", name="Paste an API key")).to_be_visible()

    tab.page.get_by_role("button", name="Forget key").click()
    expect(tab.page.get_by_label("API key")).to_be_visible()
    assert json.loads(tab.page.evaluate(STORES)) == [{}, {}, ""]


def test_a_key_that_the_api_refuses_is_given_up_with_the_reason(newcomer: Visit) -> None:
    tab = newcomer()
    tab.expected = {401}
    tab.open("#/runs/some-run")
    tab.page.get_by_label("API key").fill("not a key")
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("alert")).to_contain_text("begins with rt_")
    tab.page.get_by_label("API key").fill("rt_" + "x" * 43)
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("alert")).to_contain_text("does not accept this key")
    expect(tab.page.get_by_label("API key")).to_have_value("")
    assert json.loads(tab.page.evaluate(STORES)) == [{}, {}, ""]
