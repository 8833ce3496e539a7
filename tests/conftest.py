"""What all tests share."""

import os

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.stages"]

os.environ.setdefault("POWERTOOLS_LOG_LEVEL", "CRITICAL")
os.environ.setdefault("POWERTOOLS_METRICS_DISABLED", "true")

settings.register_profile(
    "runtally", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("runtally")
