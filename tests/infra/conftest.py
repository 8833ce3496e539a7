"""One synthesis per stage serves all infrastructure tests."""

import pytest

from tests.infra.assembly import Assembly, synthesise, with_all_options

STAGES = ("local", "dev", "prod", "dev with all options")
"""The last is no stage that we ship: it has what users may switch on, on AWS, the cache, too."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All in one worker: each would start CDK anew."""
    for item in items:
        if item.path.is_relative_to(__file__.rpartition("/")[0]):
            item.add_marker(pytest.mark.xdist_group("cdk"))


@pytest.fixture(params=STAGES)
def assembly(request: pytest.FixtureRequest) -> Assembly:
    """What every stage promises."""
    return _synthesise(request.param)


@pytest.fixture(params=STAGES[1:])
def aws_assembly(request: pytest.FixtureRequest) -> Assembly:
    """What only stages on AWS promise."""
    return _synthesise(request.param)


def _synthesise(stage: str) -> Assembly:
    return with_all_options(coordinated=True) if stage == STAGES[-1] else synthesise(stage)
