"""When somebody has to look at the lake, in a stage that has one; its dead letters and its crashes
are watched as all others are."""

from collections.abc import Iterator
from typing import Final

from aws_cdk import Duration

from cdk.alarms import Watch
from cdk.measures import NOW
from cdk.watched import Watched

_BEHIND: Final = Duration.hours(1)


def lake_watches(watched: Watched) -> Iterator[Watch]:
    if lake := watched.function("lake"):
        yield Watch(
            "LakeBehind",
            lake.metric("IteratorAge", statistic="Maximum", period=NOW),
            "the lake is over an hour behind the table",
            "lake-behind",
            above=_BEHIND.to_milliseconds(),
            periods=2,
        )
