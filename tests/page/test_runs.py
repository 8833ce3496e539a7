"""The list of runs: what stands in it, what filters leave, how it grows and keeps up."""

from playwright.sync_api import Locator, expect

from functions.api.runs import RUNS_A_PAGE
from tests.page.conftest import ApiOf, Visit
from tests.page.runs import MANY

IDS = "(cards) => cards.map((card) => card.querySelector('.id').textContent)"


def ids(cards: Locator) -> list[str]:
    shown: list[str] = cards.evaluate_all(IDS)
    return shown


def test_the_newest_run_comes_first_with_its_exact_totals(visit: Visit, api: ApiOf) -> None:
    listed = api("demo").get("/pipeline-runs").json["runs"]
    assert [run["started_at"] for run in listed] == sorted(
        (run["started_at"] for run in listed), reverse=True
    )
    tab = visit()
    tab.open("#/runs")
    cards = tab.page.get_by_role("article")
    expect(cards).to_have_count(len(listed))
    assert ids(cards) == [run["run_id"] for run in listed]
    for run, card in zip(listed, cards.all(), strict=True):
        shown = tab.figures(card)
        assert shown["Calls"] == f"{run['totals']['agents_total']:,}"
        assert shown["Failed"] == f"{run['totals']['failed_total']:,}"
        assert shown["Cost"].split(" ")[0] == f"${run['totals']['cost_usd_total']}"
        assert run["status"] in card.inner_text()


def test_the_first_calls_of_a_large_run_say_of_how_many(visit: Visit) -> None:
    tab = visit()
    tab.open("#/runs?pipeline=wide")
    card = tab.page.get_by_role("article")
    card.get_by_text("first 100 of 1,500").click()
    expect(card.locator(".call-list li")).to_have_count(100)


def test_filters_stand_in_the_address_and_hold_after_a_reload(visit: Visit) -> None:
    tab = visit("many")
    tab.open("#/runs")
    cards = tab.page.get_by_role("article")
    expect(cards.first).to_be_visible()
    tab.page.get_by_label("Status").select_option("failed")
    expect(tab.page.get_by_role("article").locator(".status.succeeded")).to_have_count(0)
    tab.page.get_by_label("Pipeline").fill("pipeline-0")
    tab.page.keyboard.press("Tab")
    wanted = [f"run-{n:03}" for n in range(0, MANY, 10)]
    expect(cards).to_have_count(len(wanted))
    assert ids(cards) == wanted
    assert tab.where == "#/runs?status=failed&pipeline=pipeline-0"
    tab.page.reload()
    expect(cards).to_have_count(len(wanted))
    assert ids(cards) == wanted
    expect(tab.page.get_by_label("Status")).to_have_value("failed")
    tab.page.get_by_role("link", name="Clear").click()
    expect(tab.page.get_by_text("run-001")).to_be_visible()


def test_older_runs_follow_to_the_last_and_few_are_in_the_document(visit: Visit) -> None:
    tab = visit("many")
    tab.open("#/runs")
    cards = tab.page.get_by_role("article")
    expect(cards.first).to_be_visible()
    most = 0
    while not tab.page.get_by_text(f"run-{MANY - 1:03}").is_visible():
        tab.page.mouse.wheel(0, 600)
        most = max(most, cards.count())
    assert most < RUNS_A_PAGE
    expect(tab.page.get_by_role("button", name="Load older runs")).to_have_count(0)
    pages = [asked for asked in tab.asked if "cursor=" in asked]
    assert len(pages) == -(-MANY // RUNS_A_PAGE) - 1


def test_without_a_run_it_says_how_to_record_one(visit: Visit) -> None:
    tab = visit("empty")
    tab.open("#/runs")
    expect(tab.page.get_by_role("heading", name="No runs yet")).to_be_visible()
    expect(tab.page.locator("pre")).to_contain_text("Recorder.from_environment()")
    tab.open("#/runs?status=failed")
    expect(tab.page.get_by_role("heading", name="No run is like this")).to_be_visible()
