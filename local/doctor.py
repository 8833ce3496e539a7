"""The command `runtally doctor`: whether a stage is set up well, and works."""

import time
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from local import alarms, checks, skew
from local.canary import Canary
from local.checks import Finding
from local.connect import Connect, StageOptions, connect
from local.progress import console
from local.reading import write_json
from local.stage import Stage
from local.tables import said

_HERE = StageOptions()
_POLL_S = 0.1
_MARKS = {True: ("✓", "green"), False: ("✗", "red"), None: ("–", "dim")}


class Diagnosis(Struct, frozen=True):
    ok: bool
    findings: list[Finding]


def doctor(*, at: StageOptions = _HERE, connect: Connect = connect) -> int:
    """Check a stage: how it is set up, and whether a small run sent to it comes back exact.

    The run goes to the tenant `runtally-doctor` and expires like any other. A line a check: ✓ good,
    ✗ with what to do, – could not be looked at. Fails when there is a ✗.
    """
    with at.connected(connect) as stage:
        findings = examine(stage, checks.fetch, lambda: time.sleep(_POLL_S))
        return report(_announced(findings), as_json=at.as_json)


def report(findings: Iterable[Finding], *, as_json: bool) -> int:
    """Print them as they come, or as one JSON object; the exit code."""
    found = []
    for finding in findings:
        found.append(finding)
        if not as_json:
            _print(finding)
    ok = all(finding.ok is not False for finding in found)
    if as_json:
        write_json(Diagnosis(ok, found))
    return 0 if ok else 1


def _announced(findings: Iterator[Finding]) -> Iterator[Finding]:
    """The same, with a sign of life while the next one is looked for, not while it is shown."""
    while True:
        with console.status("Checking"):
            finding = next(findings, None)
        if finding is None:
            return
        yield finding


def examine(stage: Stage, fetch: checks.Fetch, wait: Callable[[], object]) -> Iterator[Finding]:
    """Every check, in the order in which one stands on the other."""

    def canary(stage: Stage) -> Iterator[Finding]:
        yield from Canary(stage, wait).findings()

    in_order: tuple[checks.Check, ...] = (
        checks.outputs,
        checks.versions,
        skew.deployed_version,
        checks.table,
        checks.event_sources,
        checks.queue_policies,
        checks.dead_letters,
        alarms.alarms,
        checks.http_api(fetch),
        canary,
        skew.schema_of_items,
    )
    return checks.findings(stage, iter(in_order))


def _print(finding: Finding) -> None:
    mark, colour = _MARKS[finding.ok]
    out = Console()
    out.print(
        Text.assemble((mark, colour), " ", said(finding.check), "  ", said(finding.said, "dim")),
        soft_wrap=True,
    )
    if finding.advice:
        out.print(Text.assemble("    ", said(finding.advice)), soft_wrap=True)
