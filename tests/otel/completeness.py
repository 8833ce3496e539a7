"""Whether all that a span told is found again in a payload, whatever place it has there.

Written from the promise alone: an attribute is under its own name in `attributes`, or it is one of
the parts in front, as it was or as the JSON that its text is; `a.0.b` may be a list of objects.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from runtally.otel.spans import Span

PARTS: Final = ("instructions", "input", "output", "tools")
_NUMBERED: Final = re.compile(r"(.+?)\.\d+(?:\.|$)")
_KINDS: Final = ("unspecified", "internal", "server", "client", "producer", "consumer")
_Leaf = tuple[tuple[str, ...], str]


def lost(span: Span, payload: bytes) -> list[str]:
    """Names of what is not found; empty when all is there."""
    kept = json.loads(payload)
    return [
        *_lost_fields(span, kept),
        *_lost_attributes(span.attributes, kept),
        *_lost_events(span, kept),
    ]


def _lost_fields(span: Span, kept: Mapping[str, Any]) -> Iterator[str]:
    scope = span.scope
    told: dict[str, Any] = {
        "name": span.name,
        "kind": _KINDS[span.kind],
        "trace_id": span.trace_id,
        "span_id": span.span_id,
        "parent_span_id": span.parent_span_id,
        "trace_state": span.trace_state,
        "status": {"code": span.status_code, "message": span.status_message},
        "dropped": {
            "attributes": span.dropped_attributes,
            "events": span.dropped_events,
            "links": span.dropped_links,
        },
        "resource": dict(scope.resource),
        "scope": {
            "name": scope.name,
            "version": scope.version,
            "attributes": dict(scope.attributes),
            "schema_url": scope.schema_url,
        },
        "links": [
            {
                "trace_id": link.trace_id,
                "span_id": link.span_id,
                "attributes": dict(link.attributes),
                "dropped_attributes": link.dropped_attributes,
            }
            for link in span.links
        ],
    }
    for name, value in told.items():
        if _text(_without_defaults(value)) != _text(_without_defaults(kept.get(name))):
            yield name


def _without_defaults(value: Any) -> Any:
    """An object without the members that say nothing; a field that is missing says nothing."""
    if isinstance(value, dict):
        return {name: entry for name, entry in value.items() if entry not in ("", 0, {})} or None
    if isinstance(value, list):
        return [_without_defaults(entry) for entry in value] or None
    return value or None


def _lost_attributes(attributes: Mapping[str, Any], kept: Mapping[str, Any]) -> Iterator[str]:
    rest = kept.get("attributes", {})
    parts = [kept[part] for part in PARTS if part in kept]
    flattened: dict[str, Counter[_Leaf]] = {}
    for name, value in attributes.items():
        if (name in rest and _same(value, rest[name])) or any(_same(value, p) for p in parts):
            continue
        if numbered := _NUMBERED.match(name):
            leaves = flattened.setdefault(numbered[1], Counter())
            leaves.update(_leaves(value, _words(name[len(numbered[1]) :])))
        else:
            yield name
    for prefix, leaves in flattened.items():
        if not any(Counter(_leaves(tree, ())) == leaves for tree in (rest.get(prefix), *parts)):
            yield f"{prefix}.*"


def _lost_events(span: Span, kept: Mapping[str, Any]) -> Iterator[str]:
    told = [part for name in ("input", "output") if isinstance(part := kept.get(name), list)]
    messages = [message for part in told for message in part if isinstance(message, dict)]
    for event in span.events:
        as_event = any(
            (other["name"], other["time_unix_nano"]) == (event.name, event.at)
            and other.get("dropped_attributes", 0) == event.dropped_attributes
            and _holds(other.get("attributes", {}), event.attributes)
            for other in kept.get("events", [])
        )
        as_message = any(
            "role" in message
            and message.get("time_unix_nano") == event.at
            and message.get("dropped_attributes", 0) == event.dropped_attributes
            and _holds(message, event.attributes)
            for message in messages
        )
        if not (as_event or (as_message and event.name.startswith("gen_ai."))):
            yield f"event {event.name}"


def _holds(kept: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    return all(name in kept and _same(value, kept[name]) for name, value in told.items())


def _same(value: Any, kept: Any) -> bool:
    if _text(value) == _text(kept):
        return True
    try:
        return isinstance(value, str) and _text(json.loads(value)) == _text(kept)
    except ValueError:
        return False


def _leaves(tree: Any, path: tuple[str, ...]) -> Iterator[_Leaf]:
    """Each scalar with the words on the way to it; where in a list it stands is not among them."""
    if isinstance(tree, list):
        for entry in tree:
            yield from _leaves(entry, path)
    elif isinstance(tree, dict):
        for key, entry in tree.items():
            yield from _leaves(entry, path + _words(key))
    elif tree is not None:
        yield path, _text(tree)


def _words(name: str) -> tuple[str, ...]:
    return tuple(word for word in name.split(".") if word and not word.isdecimal())


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
