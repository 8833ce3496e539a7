"""Whether the alarms of a stage are armed: on, heard by somebody, and fed with figures."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from local.checks import Finding
from local.connect import LOCAL
from local.stage import Stage

_LONG: Final = timedelta(hours=1)
"""A new alarm has no figures yet; one that has none for longer watches nothing."""
_TOPIC: Final = ":sns:"
_SUBSCRIBED: Final = "arn:"
"""What is not confirmed yet, or no longer, has a word in place of its ARN."""


def alarms(stage: Stage) -> Iterator[Finding]:
    """One finding for each alarm that is at fault, and one for each topic that they speak to."""
    if stage.stage == LOCAL:
        yield Finding("alarms", None, "not checked: the embedded AWS evaluates none")
        return
    prefix = f"runtally-{stage.stage}-"
    found = list(_pages(stage, "cloudwatch", "describe_alarms", AlarmNamePrefix=prefix))
    each = [alarm for page in found for alarm in _alarms_of(page)]
    if not each:
        advice = f"Deploy the stack {prefix}observability."
        yield Finding("alarms", False, "there are none", advice)
        return
    faulty = [finding for alarm in each for finding in _faults_of(alarm)]
    yield from faulty or [Finding("alarms", True, f"{len(each)} armed, none has gone off")]
    yield from _heard(stage, each)


def _faults_of(alarm: Mapping[str, Any]) -> Iterator[Finding]:
    name, runbook = f"alarm {alarm['AlarmName']}", alarm.get("AlarmDescription", "")
    if not alarm["ActionsEnabled"]:
        yield Finding(name, False, "its actions are off", _enable(alarm))
    if not _topics_of(alarm):
        yield Finding(name, False, "it tells nobody", "Deploy the stack that it belongs to again.")
    if alarm["StateValue"] == "ALARM":
        yield Finding(name, False, f"has gone off: {alarm.get('StateReason', '')}", runbook)
    elif alarm["StateValue"] == "INSUFFICIENT_DATA":
        since: datetime = alarm["StateUpdatedTimestamp"]
        if datetime.now(UTC) - since > _LONG:
            said = f"it has had no figures since {since:%Y-%m-%d %H:%M} UTC"
            yield Finding(name, False, said, runbook)


def _alarms_of(page: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """AWS leaves a list out that was not asked for."""
    return [*page.get("MetricAlarms", []), *page.get("CompositeAlarms", [])]


def _heard(stage: Stage, each: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    for topic in sorted({topic for alarm in each for topic in _topics_of(alarm)}):
        pages = _pages(stage, "sns", "list_subscriptions_by_topic", TopicArn=topic)
        arns = [one["SubscriptionArn"] for page in pages for one in page["Subscriptions"]]
        confirmed = sum(arn.startswith(_SUBSCRIBED) for arn in arns)
        said = f"{confirmed} confirmed of {len(arns)}"
        subscribe = (
            "Nobody is told. Confirm the subscription that was mailed, or make one: "
            f"`aws sns subscribe --topic-arn {topic} --protocol email --notification-endpoint …`."
        )
        name = f"subscriptions of {topic.rpartition(':')[2]}"
        yield Finding(name, confirmed > 0, said, "" if confirmed else subscribe)


def _topics_of(alarm: Mapping[str, Any]) -> list[str]:
    return [action for action in alarm.get("AlarmActions", ()) if _TOPIC in action]


def _enable(alarm: Mapping[str, Any]) -> str:
    return f"`aws cloudwatch enable-alarm-actions --alarm-names {alarm['AlarmName']}`."


def _pages(stage: Stage, service: str, operation: str, **request: str) -> Iterable[dict[str, Any]]:
    pages: Iterable[dict[str, Any]] = (
        stage.client(service).get_paginator(operation).paginate(**request)
    )
    return pages
