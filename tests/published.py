"""What the functions published, read from what they wrote to standard output."""

import json
from collections import Counter

import pytest


def read(capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    """The sums of all metrics since the last call, rejections as `Rejected.{reason}`."""
    sums: Counter[str] = Counter()
    for text in capsys.readouterr().out.splitlines():
        line = json.loads(text)
        if "_aws" not in line:
            continue  # a line of log
        for definition in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]:
            name = definition["Name"]
            of_reason = f".{line['reason']}" if "reason" in line else ""
            sums[name + of_reason] += sum(line[name])
    return dict(sums)
