"""Any history that people and AWS can make of a stage, as Hypothesis thinks it up.

`RUNTALLY_PROVE=1` plays many more, and other ones each time.
"""

import os

import pytest
from hypothesis import settings

from tests.simulation.histories.calling import Calling
from tests.simulation.histories.reading import Reading
from tests.simulation.histories.rotating import Rotating

_PROVE = os.environ.get("RUNTALLY_PROVE") == "1"
pytestmark = pytest.mark.timeout(7_200 if _PROVE else 300)


def _histories(number: int) -> settings:
    """The same ones whenever the code is the same, unless it is about a proof."""
    return settings(
        max_examples=50 * number if _PROVE else number,
        stateful_step_count=40,
        derandomize=not _PROVE,
    )


TestRunsBeingRead = Reading.TestCase
TestRunsBeingRead.settings = _histories(100)

TestCallers = Calling.TestCase
TestCallers.settings = _histories(60)

TestKeyHolders = Rotating.TestCase
TestKeyHolders.settings = _histories(40)
