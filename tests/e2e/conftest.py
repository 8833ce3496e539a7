"""What one test sees of a deployed stage: its own run."""

import pytest

from local.stage import Stage
from tests.e2e.pipeline import Pipeline


@pytest.fixture
def pipeline(stage: Stage, request: pytest.FixtureRequest) -> Pipeline:
    return Pipeline(stage, run_id=request.node.name)


@pytest.fixture
def guarded_pipeline(guarded_stage: Stage, request: pytest.FixtureRequest) -> Pipeline:
    return Pipeline(guarded_stage, run_id=request.node.name)
