"""The items that ingest writes: RUN, AGENT, LOG, RESULT."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from functions.adapters.dynamodb import NOT_THERE, DynamoDBTable, Refused
from functions.core import items, keys
from functions.core.errors import Unavailable
from functions.core.items import Item
from functions.core.keys import RunRef
from functions.core.model import End, Outcome, Run, RunStatus, Start
from functions.core.ports import Recorded
from runtally.wire import RunEnded, RunLog, Step

type Spread = Callable[
    [Callable[[Item], Outcome | Unavailable], Iterable[Item]], Iterable[Outcome | Unavailable]
]
"""How independent writes are spread: `map` one after the other, an executor's `map` at once."""

# A deleted run, whose tombstone this is, takes no change; an expired one is opened again first.
LIVE: Final = f"attribute_exists({keys.PARTITION}) AND attribute_not_exists(#{items.DELETED})"


def load_run(table: DynamoDBTable, ref: RunRef) -> Run | None:
    """RUN as both ingest and summarize begin: one strongly consistent read."""
    item = table.get(keys.item_of_run(ref, keys.RUN))
    return None if item is None else items.parse_run(item)


def is_tenant_deleted(table: DynamoDBTable, tenant_id: str) -> bool:
    """As core.ports.RunStore, for whoever else has to know."""
    return items.DELETED in (table.get(keys.tenant_item(tenant_id)) or {})


class DynamoDBRunStore:
    """core.ports.RunStore on the table."""

    def __init__(self, table: DynamoDBTable, spread: Spread = map) -> None:
        self._table = table
        self._spread = spread

    def load_run(self, ref: RunRef) -> Run | None:
        return load_run(self._table, ref)

    def is_tenant_deleted(self, tenant_id: str) -> bool:
        return is_tenant_deleted(self._table, tenant_id)

    def open_run(self, run: Run) -> Run | None:
        try:
            self._table.put(items.run_item(run), NOT_THERE)
        except Refused as refused:
            return None if refused.item is None else items.parse_run(refused.item)
        return None

    def append_steps(self, run: Run, steps: Sequence[Recorded[Step]]) -> list[Outcome]:
        """All are tried before the first failure is raised: a redelivery then finds them done."""
        outcomes: list[Outcome] = []
        failure: Unavailable | None = None
        for answer in self._spread(self._attempt, [items.step_item(run, s) for s in steps]):
            if isinstance(answer, Unavailable):
                failure = answer
            else:
                outcomes.append(answer)
        if failure:
            raise failure
        return outcomes

    def append_log(self, run: Run, log: Recorded[RunLog]) -> Outcome:
        return self._append(items.log_item(run, log))

    def put_result(self, run: Run, end: Recorded[RunEnded]) -> None:
        item = items.result_item(run, end)
        condition = f"{NOT_THERE} OR #at > :at OR (#at = :at AND #digest > :digest)"
        try:
            self._table.put(item, condition, {":at": item["at"], ":digest": item["digest"]})
        except Refused:
            return  # the result of an earlier end, or this very one

    def replace_start(self, run: Run, start: Start) -> None:
        earlier = "#start.#at > :at OR (#start.#at = :at AND #start.#digest > :digest)"
        condition = (
            f"#start.#implicit = :true AND ({earlier})"
            if start.implicit
            else f"#start.#implicit = :true OR {earlier}"
        )
        order = {":at": start.order.at, ":digest": start.order.digest, ":true": True}
        self._settle(run, items.start_attributes(run.ref, start), condition, order)

    def end_run(self, run: Run, end: End) -> None:
        condition = (
            "attribute_not_exists(#end) OR #end.#at > :at"
            " OR (#end.#at = :at AND #end.#digest > :digest)"
        )
        order = {":at": end.order.at, ":digest": end.order.digest}
        attributes = {**items.end_attributes(end), keys.EXPIRES: run.expires_at}
        no_longer_open = (keys.OPEN_RUNS_PARTITION, keys.OPEN_RUNS_SORT, *items.STALE_MARK)
        self._settle(run, attributes, condition, order, remove=no_longer_open)

    def extend_retention(self, run: Run) -> None:
        attributes = {keys.EXPIRES: run.expires_at}
        self._settle(run, attributes, f"#{keys.EXPIRES} < :{keys.EXPIRES}", {})

    def resume(self, run: Run, since: int) -> None:
        running = {"status": RunStatus.RUNNING.value}
        older = f"#{items.STALE} < :since"
        self._settle(run, running, older, {":since": since}, remove=items.STALE_MARK)

    def move_mark(self, run: Run, since: int) -> None:
        self._settle(run, {items.STALE: since}, f"#{items.STALE} < :{items.STALE}", {})

    def _settle(
        self,
        run: Run,
        attributes: Item,
        condition: str,
        order: Item,
        remove: Sequence[str] = (),
    ) -> None:
        """Change RUN if it lives and the condition holds; one that is gone must be opened again."""
        expression = "SET " + ", ".join(f"#{name} = :{name}" for name in attributes)
        if remove:
            expression += " REMOVE " + ", ".join(f"#{name}" for name in remove)
        values = {f":{name}": value for name, value in attributes.items()} | order
        try:
            key = keys.item_of_run(run.ref, keys.RUN)
            self._table.update(key, expression, f"{LIVE} AND ({condition})", values)
        except Refused as refused:
            if refused.item is None:
                raise Unavailable(f"{run.ref.run_id} expired while it was recorded") from None

    def _attempt(self, item: Item) -> Outcome | Unavailable:
        try:
            return self._append(item)
        except Unavailable as failure:
            return failure

    def _append(self, item: Item) -> Outcome:
        """One conditional write; a refused one returns the stored item, so no read follows."""
        try:
            self._table.put(item, NOT_THERE)
        except Refused as refused:
            same = refused.item is not None and refused.item.get("digest") == item["digest"]
            return Outcome.DUPLICATE if same else Outcome.CONFLICT
        return Outcome.STORED
