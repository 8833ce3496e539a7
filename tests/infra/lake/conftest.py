"""Each test of a stack runs on both."""

import pytest

from tests.infra.assembly import Assembly, Template, whole_lake, with_lake
from tests.infra.lake.stacks import PLAIN, stack_of


@pytest.fixture(params=["plain", "whole"])
def assembly(request: pytest.FixtureRequest) -> Assembly:
    return with_lake("dev", PLAIN if request.param == "plain" else whole_lake())


@pytest.fixture
def stack(assembly: Assembly) -> Template:
    return stack_of(assembly)
