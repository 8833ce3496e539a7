"""The page in a real browser, before the API of a deployed stage that holds the runs of runs.py."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from local import waiting
from local.demo import send_and_wait
from local.page import PageServer
from local.reading import Reading
from local.sending import send
from local.stage import Stage
from tests.e2e.http import DeployedApi, key_of
from tests.page import runs
from tests.page.browser import Visitor, launched

type Visit = Callable[..., Visitor]
type ApiOf = Callable[[str], DeployedApi]

WITHIN_S = 120


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All in one worker: they share a stage and a browser."""
    for item in items:
        if item.path.is_relative_to(__file__.rpartition("/")[0]):
            item.add_marker(pytest.mark.xdist_group("page"))


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Not for the whole session: while it is there, its event loop runs in this very thread, where
    tests of other folders want to start their own."""
    with launched() as browser:
        yield browser


@pytest.fixture(scope="session")
def address(stage: Stage) -> Iterator[str]:
    """Where the page of the deployed stage is served."""
    with PageServer(stage.api_url) as server:
        yield server.address


@pytest.fixture(scope="session")
def filled(stage: Stage) -> Stage:
    """The stage once the runs of runs.py are there."""
    now = time.time_ns()
    send_and_wait(stage, [*runs.samples(), *runs.odd(now)], WITHIN_S)
    send(stage, runs.many(now))
    many = Reading.of(stage, "many")

    def listed() -> bool | None:
        return True if len(list(many.runs(limit=None))) == runs.MANY else None

    waiting.until(listed, WITHIN_S, "The runs were not listed")
    return stage


@pytest.fixture(scope="session")
def api(filled: Stage) -> ApiOf:
    """The API as a tenant's key sees it, without the page; one key a tenant."""
    clients: dict[str, DeployedApi] = {}

    def of(tenant_id: str) -> DeployedApi:
        if tenant_id not in clients:
            clients[tenant_id] = DeployedApi(filled.api_url, key_of(filled, tenant_id))
        return clients[tenant_id]

    return of


@pytest.fixture
def newcomer(browser: Browser, address: str) -> Iterator[Visit]:
    """Opens a tab without a key; at the end of the test, nothing may have gone wrong in any."""
    tabs: list[Visitor] = []

    def visit(**settings: Any) -> Visitor:
        tabs.append(Visitor(browser, address, **settings))
        return tabs[-1]

    yield visit
    assert [trouble for tab in tabs for trouble in tab.leave()] == []


@pytest.fixture
def visit(newcomer: Visit, api: ApiOf) -> Visit:
    """As newcomer, but with a key of the tenant."""

    def visit(tenant_id: str = "demo", **settings: Any) -> Visitor:
        return newcomer(key=api(tenant_id).key, **settings)

    return visit
