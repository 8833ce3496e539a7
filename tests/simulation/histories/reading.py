"""The rules by which runs are read, over HTTP, page by page, while they are being recorded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, rule

from functions.core import keys
from functions.core.keys import RunRef
from tests.api import Answer
from tests.simulation.histories.recording import Recording
from tests.simulation.histories.told import PIPELINES, TENANTS, Told, secret_of

_PACES: Final = st.sampled_from((0, 5, 13))
"""Seconds between two looks at the clock; a page ends after 12, and never without a row."""


@dataclass(eq=False)
class Walk:
    """A list that is read page by page; `there` is what must be in it, if it stays as it is."""

    tenant_id: str
    path: str
    query: Mapping[str, str]
    there: Mapping[str, Any]
    cursor: str | None = None
    ended: bool = False
    found: list[Any] = field(default_factory=list)


class Reading(Recording):
    walks = Bundle("walks")

    def __init__(self) -> None:
        super().__init__()
        self._begun: list[Walk] = []

    # -- lists ----------------------------------------------------------------------------------

    @rule(
        target=walks,
        tenant_id=st.sampled_from(TENANTS),
        status=st.sampled_from((None, None, "running", "succeeded", "failed")),
        pipeline=st.sampled_from((None, None, None, *PIPELINES)),
        limit=st.sampled_from((1, 1, 2, 3)),
    )
    def list_runs(
        self, tenant_id: str, status: str | None, pipeline: str | None, limit: int
    ) -> Walk:
        wanted = {"status": status}
        if pipeline:
            wanted["pipeline"] = f"{secret_of(tenant_id)} {pipeline}"
        where = {name: value for name, value in wanted.items() if value}
        there = {
            ref.run_id: item
            for ref in self.told
            if ref.tenant_id == tenant_id
            and (item := self._caught_up(ref)) is not None
            and all(item[name]["S"] == value for name, value in where.items())
        }
        return self._begin(Walk(tenant_id, "/pipeline-runs", {**where, "limit": str(limit)}, there))

    def _caught_up(self, ref: RunRef) -> Any:
        """RUN, unless the index may still show it as it was before."""
        key = keys.item_of_run(ref, keys.RUN)
        item = self.stage.dynamodb.items.get(key)
        return item if item is self.caught_up.get(key) else None

    @rule(target=walks, run=Recording.runs)
    def read_run(self, run: Told) -> Walk:
        there = dict.fromkeys(self._stored(run))
        return self._begin(Walk(run.ref.tenant_id, f"/pipeline-runs/{run.ref.run_id}", {}, there))

    def _begin(self, walk: Walk) -> Walk:
        self._begun.append(walk)
        return walk

    @rule(walk=walks, pace=_PACES)
    def turn_page(self, walk: Walk, pace: int) -> None:
        if walk.ended:
            return
        cursor = {} if walk.cursor is None else {"cursor": walk.cursor}
        answer = self.get(walk.tenant_id, walk.path, {**walk.query, **cursor}, pace=pace)
        if walk.path == "/pipeline-runs":
            self._see_runs(walk, answer)
        else:
            self._see_calls(walk, answer)
        for other in TENANTS:
            if walk.cursor is not None and other != walk.tenant_id:
                stolen = self.get(other, walk.path, {**walk.query, "cursor": walk.cursor})
                assert stolen.status == 400, "I8: another tenant's cursor"

    def _see_runs(self, walk: Walk, answer: Answer) -> None:
        assert answer.status == 200, answer.body
        rows = answer.json["runs"]
        assert len(rows) <= int(walk.query["limit"])
        for row in rows:
            for name in walk.query.keys() & {"status", "pipeline"}:
                assert row[name] == walk.query[name]
            assert not self.is_gone(self.told[RunRef(walk.tenant_id, row["run_id"])]), (
                "an expired run"
            )
        walk.found += [(row["started_at"], row["run_id"]) for row in rows]
        assert walk.found == sorted(set(walk.found), reverse=True), "I9: newest first, each once"
        walk.cursor = answer.json.get("next")
        walk.ended = walk.cursor is None
        if walk.ended:
            found = [run_id for _, run_id in walk.found]
            for run_id, item in walk.there.items():
                ref = RunRef(walk.tenant_id, run_id)
                unchanged = self.stage.dynamodb.items.get(keys.item_of_run(ref, keys.RUN)) is item
                if unchanged and not self.is_gone(self.told[ref]):
                    assert found.count(run_id) == 1, f"I9: {run_id} in {found}"

    def _see_calls(self, walk: Walk, answer: Answer) -> None:
        run = self.told[RunRef(walk.tenant_id, walk.path.rpartition("/")[2])]
        if not self._is_there(run):
            assert answer.status == 404, answer.body
            walk.ended = True
            return
        assert answer.status == 200, answer.body
        shown = answer.json
        if walk.cursor is None:
            self._see_totals(run, shown["totals"]["agents_total"])
        for call in shown["calls"]:
            step = run.steps[call["step_id"]]
            seen = call["name"], call["status"], call.get("phase"), call.get("parent_id")
            assert seen == (step.name, step.status, step.phase, step.parent_id), "I2: another call"
            walk.found.append(call["step_id"])
        assert walk.found == sorted(set(walk.found)), "I9: in step order, each once"
        walk.cursor = shown.get("next")
        walk.ended = walk.cursor is None
        if walk.ended:
            assert walk.there.keys() <= set(walk.found), "I9: a call is missing"

    def _see_totals(self, run: Told, total: int) -> None:
        """A reader too never sees them fall, though they come from TOTALS or from SUMMARY."""
        assert run.shown <= total <= len(self._stored(run))
        run.shown = total

    # -- one thing ------------------------------------------------------------------------------

    @rule(run=Recording.runs, number=st.integers(1, 4), what=st.sampled_from(("payload", "event")))
    def read_call(self, run: Told, number: int, what: str) -> None:
        step_id = run.step_id(number)
        answer = self.get(
            run.ref.tenant_id, f"/pipeline-runs/{run.ref.run_id}/calls/{step_id}/{what}"
        )
        if not self._is_there(run) or step_id not in self._stored(run):
            assert answer.status == 404, answer.body
            return
        step = run.steps[step_id]
        expected = "ok" if step.payload or what == "event" else "none"
        assert answer.json[f"{what}_state"] == expected
        if step.payload:
            assert bytes(step.payload) in answer.body

    @rule(
        run=Recording.runs,
        tenant_id=st.sampled_from(TENANTS),
        path=st.sampled_from(
            (
                "/pipeline-runs/{}",
                "/pipeline-runs/{}/result",
                "/pipeline-runs/{}/calls/{}/payload",
                "/insights?view=summary",
                "/insights?view=compare&a={}&b=run-1",
            )
        ),
    )
    def look_around(self, run: Told, tenant_id: str, path: str) -> None:
        """With ids that may be another tenant's alone."""
        path, _, query = path.format(run.ref.run_id, run.step_id(1)).partition("?")
        answer = self.ask(tenant_id, "GET", path, query=query)
        own = self.told.get(RunRef(tenant_id, run.ref.run_id))
        if path.startswith("/pipeline-runs") and not path.endswith("payload"):
            there = own is not None and self._is_there(own)
            assert answer.status == (200 if there else 404), answer.body
        assert answer.status in {200, 404}, answer.body

    # -------------------------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        super().come_to_rest()
        for walk in self._begun:
            while not walk.ended:
                self.turn_page(walk, 0)

    def _is_there(self, run: Told) -> bool:
        return not self.is_gone(run) and self.stage.item(run.ref, keys.RUN) is not None

    def _stored(self, run: Told) -> set[str]:
        items = self.stage.items_of(run.ref, keys.STEP_PREFIX)
        return {item[keys.SORT].removeprefix(keys.STEP_PREFIX) for item in items}
