"""What the page says when the API does not give what was asked for, and how it gets over it."""

import json

import pytest
from playwright.sync_api import Route, expect

from tests.page.conftest import Visit

PROBLEM = {
    "type": "https://runtally.dev/problems/internal_error",
    "title": "Internal Server Error",
    "status": 500,
    "detail": "a fault of the API itself",
    "reason": "internal_error",
    "instance": "req-17",
}


def fail(route: Route) -> None:
    route.fulfill(status=500, content_type="application/problem+json", body=json.dumps(PROBLEM))


def test_a_run_that_is_not_there_may_be_somebody_elses(visit: Visit) -> None:
    tab = visit("odd")
    tab.expected = {404}
    tab.open("#/runs/no-such-run")
    alert = tab.page.get_by_role("alert")
    expect(alert).to_contain_text("Not found, or not yours")
    expect(alert).to_contain_text("belongs to another tenant than your key")
    tab.page.get_by_role("link", name="Runs", exact=True).first.click()
    expect(tab.page.get_by_role("article").first).to_be_visible()


@pytest.mark.parametrize("where", ["#/runs", "#/runs/costs", "#/insights"])
def test_a_fault_of_the_api_names_the_request_and_a_retry_gets_over_it(
    visit: Visit, where: str
) -> None:
    tab = visit("odd")
    tab.expected = {500}
    tab.page.clock.install()
    tab.page.route("**/api/**", fail)
    tab.open(where)
    alert = tab.page.get_by_role("alert")
    expect(alert).to_contain_text("Internal Server Error")
    expect(alert).to_contain_text("Request: req-17")
    while alert.get_by_role("button", name="Try again").count() == 0:
        tab.page.clock.fast_forward("00:10")  # until it stops trying by itself
    tab.page.unroute("**/api/**")
    # At once: before long the list is read again by itself, and nothing is left to be pressed.
    alert.get_by_role("button", name="Try again").evaluate("(button) => button.click()")
    expect(alert).to_have_count(0)
    expect(tab.page.locator("article, .run-header, table").first).to_be_visible()


def test_a_network_that_is_down_leaves_what_was_read_and_comes_back(visit: Visit) -> None:
    tab = visit("odd")
    tab.page.clock.install()
    tab.open("#/runs")
    cards = tab.page.get_by_role("article")
    expect(cards).to_have_count(2)
    tab.page.route("**/api/**", lambda route: route.abort())
    tab.page.clock.fast_forward("00:31")
    alert = tab.page.get_by_role("alert")
    expect(alert).to_contain_text("The API cannot be reached")
    expect(alert).to_contain_text("What is below was read before.")
    expect(cards).to_have_count(2)
    tab.page.unroute("**/api/**")
    tab.page.clock.fast_forward("00:31")
    expect(alert).to_have_count(0)


def test_a_payload_that_cannot_be_read_does_not_take_the_call_away(visit: Visit) -> None:
    tab = visit("odd")
    tab.expected = {500}
    tab.page.route("**/payload", fail)
    tab.open("#/runs/hostile?tab=calls")
    tab.page.get_by_role("link", name="one long line").click()
    drawer = tab.page.get_by_role("dialog")
    expect(drawer.get_by_role("alert")).to_contain_text("Internal Server Error")
    expect(drawer.locator(".facts")).to_contain_text("tool")


def test_an_address_of_no_view_leads_back(visit: Visit) -> None:
    tab = visit("odd")
    tab.open("#/nonsense")
    expect(tab.page.get_by_role("heading", name="There is no such view")).to_be_visible()
    tab.page.get_by_role("link", name="Show all runs").click()
    assert tab.where == "#/runs"
