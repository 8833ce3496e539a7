"""One synthesis per stage serves all infrastructure tests."""

import pytest

from tests.infra.assembly import Assembly, synthesise

STAGES = ("local", "dev", "prod")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All in one worker: each would start CDK anew."""
    for item in items:
        if item.path.is_relative_to(__file__.rpartition("/")[0]):
            item.add_marker(pytest.mark.xdist_group("cdk"))


@pytest.fixture(params=STAGES)
def assembly(request: pytest.FixtureRequest) -> Assembly:
    """What every stage promises."""
    return synthesise(request.param)


@pytest.fixture(params=("dev", "prod"))
def aws_assembly(request: pytest.FixtureRequest) -> Assembly:
    """What only stages on AWS promise."""
    return synthesise(request.param)
