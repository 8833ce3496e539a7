"""Any history that people and AWS can make of a stage, as Hypothesis thinks it up.

`RUNTALLY_PROVE=1` plays many, other ones each time.
"""

import os

import pytest
from hypothesis import settings

from tests.simulation.histories.reading import Reading

_PROVE = os.environ.get("RUNTALLY_PROVE") == "1"
pytestmark = pytest.mark.timeout(7_200 if _PROVE else 300)

TestHistories = Reading.TestCase
TestHistories.settings = settings(
    max_examples=3_000 if _PROVE else 60, stateful_step_count=40, derandomize=not _PROVE
)
