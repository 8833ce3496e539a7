"""Stages on the embedded AWS, deployed by the CDK command line: one a session, shared by its tests.

Tests that share one belong to one group of pytest-xdist (`pytestmark`), so that it is made once.
"""

from collections.abc import Iterator
from contextlib import closing

import pytest

from local.deploy import deploy
from local.emulator import Emulator
from local.stage import Stage


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    """A stage where every request is allowed."""
    with Emulator() as emulator, closing(deploy(emulator)) as stage:
        yield stage


@pytest.fixture(scope="session")
def guarded_stage() -> Iterator[Stage]:
    """A stage that holds the functions to the policies of their roles."""
    with Emulator(auth=True) as emulator, closing(deploy(emulator)) as stage:
        yield stage
