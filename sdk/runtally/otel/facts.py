"""What the attributes of a span or an event say of a step: texts, phase, tokens and cost."""

import decimal
import json
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from runtally import fields, names, prices
from runtally.otel import mapping
from runtally.otel.rows import Rows, first_of
from runtally.otel.spans import Attributes

_MOST_TOKENS: Final = 10**12
_MOST_USD: Final = 10**12
_EXACT: Final = decimal.Context(prec=400, Emin=-decimal.MAX_EMAX, Emax=decimal.MAX_EMAX)
_ROWS: Final = Rows(mapping.ROWS)


class Facts:
    """What is said of one step, by rows of the table; `kind` is what decides whether it counts.
    Only what is not told whole goes through `redact`."""

    def __init__(
        self,
        name: str,
        attributes: Attributes,
        kind: str | None = None,
        *,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._name = name
        self._attributes = attributes
        self._redact = redact
        self.told = _ROWS.read(attributes)
        self.kind = kind or kind_of(name, attributes)

    def put(self, made: fields.Fields, at: int) -> None:
        """Put all of it into an event; `at`, in nanoseconds, decides which prices hold."""
        for field in mapping.FIELDS:
            if field in self.told:
                made.put(field, self.told[field])
        if "phase" not in self.told:
            made.put("phase_hint", self._phase_hint())
        kept = {name: self.told[name] for name in mapping.KEPT if name in self.told}
        used = self._tokens()
        cost = self._reported_cost()
        if cost is not None and not _is_money(cost):
            made.put("cost_usd", cost)  # which says that it was dropped
            cost = None
        if self.kind not in mapping.COUNTED_KINDS:
            made.put("attributes", kept | _repeated(used, cost))
            return
        made.put("attributes", kept)
        for field, count in used.items():
            made.put(field, count)
        if cost is not None:
            made.put("cost_usd", cost)
        elif priced := self._priced(used, at):
            made.put("cost_computed_usd", priced.usd)
            made.put("price_table", priced.price_table)

    @property
    def failed(self) -> bool:
        """Whether an attribute tells a failure; a list or an object never does."""
        return any(
            isinstance(value := self._attributes[name], (str, bool))
            and value in mapping.FAILED[name]
            for name in self._attributes.keys() & mapping.FAILED.keys()
        )

    def _phase_hint(self) -> str | None:
        """What the phase may be called, if this is the outermost below the root that says so."""
        node = self.told.get("node") or self._metadata().get("langgraph_node")
        if node is None and self.kind in mapping.NODE_KINDS:
            node = self.told.get("agent")
        hint = names.grouped(self._redact(str(node))) if node else ""
        return None if hint in {"", "*"} else hint

    def _metadata(self) -> Mapping[str, Any]:
        """OpenInference's, which is JSON text."""
        written = self._attributes.get("metadata")
        hinted = isinstance(written, str) and "langgraph_node" in written
        return _json_object(written) if hinted else {}

    def _tokens(self) -> dict[str, int]:
        """Cached tokens are within the input's, as the convention has it; mended where not."""
        details = _json_object(self._attributes.get(mapping.USAGE_DETAILS))
        used: dict[str, int] = {}
        for field in mapping.TOKENS:
            value = first_of(details, mapping.USAGE_DETAIL_NAMES[field]) if details else None
            count = _count(self.told.get(field) if value is None else value)
            if count is not None:
                used[field] = count
        beside = used.get("cached_tokens", 0) + used.get("cache_write_tokens", 0)
        if beside and "input_tokens" in used:
            excluded = self._name.startswith(mapping.EXCLUDES_CACHED)
            apart = used["input_tokens"] + beside + used.get("output_tokens", 0)
            if excluded or beside > used["input_tokens"] or details.get("total") == apart:
                used["input_tokens"] += beside
        return used

    def _reported_cost(self) -> Any:
        cost = self.told.get("cost")
        if cost is None:
            cost = _total_of(_json_object(self._attributes.get(mapping.COST_DETAILS)))
        return Decimal(repr(cost)) if isinstance(cost, float) else cost

    def _priced(self, used: Mapping[str, int], at: int) -> prices.Cost | None:
        """By the model that answered, else by the one that was asked for."""
        provider = str(self.told.get("provider") or "") or None
        counts = {field: used.get(field) for field in mapping.TOKENS}
        costs = (prices.cost_of(model, provider, at=at, **counts) for model in self._models())
        return next(filter(None, costs), None)

    def _models(self) -> Iterable[str]:
        """The one that answered, then the one that was asked for."""
        given = (self._attributes.get(name) for name in mapping.FIELDS["model"])
        return dict.fromkeys(str(model) for model in given if model)


def kind_of(name: str, attributes: Attributes) -> str:
    if kind := mapping.KINDS_BY_NAME.get(name):
        return kind
    for attribute, meanings in mapping.KINDS.items():
        if attribute in attributes and (kind := meanings.get(str(attributes[attribute]))):
            return kind
    return next((kind for there, kind in mapping.KINDS_BY_PRESENCE if there in attributes), "span")


def dropped(*, attributes: int = 0, events: int = 0) -> dict[str, int]:
    """How much the emitter left out, named as
    https://opentelemetry.io/docs/specs/otel/common/mapping-to-non-otlp/ has it."""
    counts = {"attributes": attributes, "events": events}
    return {f"otel.dropped_{what}_count": count for what, count in counts.items() if count}


def _json_object(written: object) -> Mapping[str, Any]:
    if written is None or isinstance(written, Mapping):
        return written or {}
    try:
        # The standard parser, for `NaN` and for integers of any size.
        value = json.loads(str(written))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int | None:
    """A count of tokens, which may come as text. None for what is none."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    number = _decimal(value)
    # Written out, 1e999999 has a million digits.
    if number is None or abs(number) > _MOST_TOKENS or number != number.to_integral_value():
        return None
    return int(number)


def _decimal(value: Any) -> Decimal | None:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _total_of(details: Mapping[str, Any]) -> Any:
    """Langfuse's `total`; where none is given, it is the sum."""
    if "total" in details or not details:
        return details.get("total")
    costs = [_decimal(cost) for cost in details.values()]
    if any(cost is None or abs(cost) > _MOST_USD for cost in costs):
        return None
    total = Decimal(0)
    for cost in costs:
        total = _EXACT.add(total, cost or Decimal(0))  # whatever context the application set
    return total


def _is_money(cost: Any) -> bool:
    try:
        fields.money(cost)
    except (TypeError, ValueError):
        return False
    return True


def _repeated(used: Mapping[str, int], cost: Any) -> dict[str, Any]:
    """Sums over the steps below: said, but not counted again."""
    said: dict[str, Any] = {f"children.{field}": count for field, count in used.items()}
    if cost is not None:
        said["children.cost_usd"] = str(cost)
    return said
