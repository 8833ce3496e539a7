r"""What must not be recorded, taken out of every text of an event before it goes anywhere.

A text is any string that the wire format takes whatever it is: names, phase, agent, session id,
model, error, result, lines of log, attributes with their keys, and every string in a payload, keys
included. What has a form of its own stays: ids, kind, status, amounts; so do numbers, structure and
every string that nothing was found in, byte for byte. docs/redaction.md has the rest.
"""

import functools
import json
import logging
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, TypeVar, cast

import msgspec

from runtally import json_text, redacted_logs, wire

Redact: TypeAlias = Callable[[str], str]
"""Gives the text back as it may be recorded. The same text must give the same, whenever: events
that are sent again are told apart by their bytes."""

FAILED: Final = "[redaction failed]"
KEPT: Final = frozenset(
    {
        "cost_computed_usd",
        "cost_usd",
        "invocation_id",
        "kind",
        "log_id",
        "parent_id",
        "status",
        "step_id",
        "type",
    }
)
"""Fields whose strings have a form of their own, in the events that have them."""
_MAY_BE_JSON: Final = frozenset({"attributes", "result"})
"""Fields for which the library writes as JSON what is no text: it stays JSON."""

_Event = TypeVar("_Event", bound=wire.Event)

_log = logging.getLogger("runtally")
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_events: Final = (wire.RunStarted, wire.Step, wire.RunLog, wire.RunEnded, wire.InvocationEnded)
_fields: Final = frozenset(name for e in _events for name in e.__struct_fields__) | {"type"}


def _forms_of(event: type[wire.Event], tag: str) -> dict[str, msgspec.json.Decoder[Any]]:
    forms = typing.get_type_hints(event, include_extras=True) | {"type": typing.Literal[tag]}
    return {name: msgspec.json.Decoder(form) for name, form in forms.items() if name in KEPT}


_forms: Final[Mapping[str, Mapping[str, msgspec.json.Decoder[Any]]]] = {
    tag: _forms_of(event, tag)
    for event in _events
    if isinstance(tag := event.__struct_config__.tag, str)
}
"""By type of event, what checks the form of each field that stays."""


def rules() -> Redact:
    """The managed rule set: e-mail addresses, keys, card numbers.

    Raises ImportError that names the extra to install.
    """
    try:
        from runtally import managed_rules  # noqa: PLC0415 - for those who want it
    except ImportError as error:
        raise ImportError(f"install runtally[redact]: {error}") from error
    return managed_rules.redact


class Redactor:
    """Redacts events, and what the library logs for as long as this object lives. Thread-safe.

    Where `formatted` names loggers, it is their messages instead, and their formatter alone tells
    of exceptions.
    """

    def __init__(self, redact: Redact, formatted: Iterable[str] = ()) -> None:
        self.failed = 0
        """How many texts became FAILED: the function raised, or returned no text."""
        self._redact = redact
        if formatted:
            redacted_logs.messages.keep(self, formatted)
        else:
            redacted_logs.all_told.keep(self, ("runtally",))

    def text(self, text: str) -> str:
        """The text as it may be recorded. Never raises: what cannot be redacted is not told."""
        try:
            redacted: object = self._redact(text)
            if isinstance(redacted, str):
                return redacted
            why = "no text was returned"
        except Exception as error:  # noqa: BLE001 - the application's own function
            why = type(error).__name__  # not its words, which may quote the text
        self.failed += 1
        if self.failed == 1:
            failing = "runtally: texts become %s, since redacting them fails: %s"
            _log.error(failing, FAILED, why, extra=redacted_logs.NO_TEXT)
        return FAILED

    def event(self, event: _Event) -> _Event:
        """The event, redacted; still valid by the wire format."""
        line = wire.encode_event(event)
        redacted = self.line(line)
        return event if redacted is line else cast("_Event", wire.decode_event(redacted, ""))

    def line(self, line: bytes) -> bytes:
        """The line of a valid event, redacted and minified; the very same object where nothing was
        found.

        Fields that the wire format does not know are redacted like any other text.
        """
        minified = json_text.minify(line)
        members = {name: bytes(value) for name, value in _members.decode(minified).items()}
        forms = _forms_in(members)
        texts = _Texts(self.text, members.keys() & _fields)
        for name, value in members.items():
            if name not in _fields:
                texts.see_key(name)
            if not _has_form(forms.get(name), value):
                members[name] = texts.in_value(value, may_be_json=name in _MAY_BE_JSON)
        renamed = texts.renamed_keys()
        redacted = b",".join(
            # What the wire format calls its own stays, whatever becomes of such a key elsewhere.
            _encoded(name if name in _fields else renamed.get(name, name))
            + b":"
            + _with_keys(value, renamed)
            for name, value in members.items()
        )
        redacted = b"{" + redacted + b"}"
        return line if redacted == minified else redacted


def _forms_in(members: Mapping[str, bytes]) -> Mapping[str, msgspec.json.Decoder[Any]]:
    try:
        return _forms.get(msgspec.json.decode(members.get("type", b"null"), type=str), {})
    except msgspec.DecodeError:
        return {}


def _has_form(form: msgspec.json.Decoder[Any] | None, value: bytes) -> bool:
    if form is None:
        return False
    try:
        form.decode(value)
    except msgspec.DecodeError:
        return False
    return True


class _Texts:
    """The texts of one event. Two keys that redaction would make one are numbered, past those that
    stay as they are: within an event the same key always becomes the same."""

    def __init__(self, redact: Redact, taken: Iterable[str]) -> None:
        self._redact = redact
        self._keys: dict[str, str] = {}
        self._taken = set(taken)

    def see_key(self, key: str) -> None:
        if key not in self._keys:
            self._keys[key] = self._redact(key)

    def in_value(self, value: bytes, *, may_be_json: bool = False) -> bytes:
        """JSON without white space, every string in it redacted; the same object if none was.

        Keys are seen, but stay for now: what they become depends on all of them. Strings that
        `may_be_json` are looked into where they are an object or an array, whose keys are numbered
        for themselves.
        """
        text = self._text_or_json if may_be_json else self._redact
        return json_text.replace_strings(value, functools.partial(self._string, text))

    def renamed_keys(self) -> Mapping[str, str]:
        """Of all keys seen, what those become that do not stay."""
        taken = self._taken.union(key for key, redacted in self._keys.items() if key == redacted)
        numbers: dict[str, int] = {}
        renamed: dict[str, str] = {}
        for key, redacted in self._keys.items():
            if key != redacted:
                new = redacted
                number = numbers.get(redacted, 1)
                while new in taken:
                    number += 1
                    new = f"{redacted} {number}"
                numbers[redacted] = number
                taken.add(new)
                renamed[key] = new
        return renamed

    def _string(self, redact: Redact, written: bytes, is_key: bool) -> bytes | None:
        text = _decoded(written)
        if is_key:
            self.see_key(text)
            return None
        redacted = redact(text)
        return None if redacted == text else _encoded(redacted)

    def _text_or_json(self, text: str) -> str:
        if not text.lstrip().startswith(("{", "[")):
            return self._redact(text)
        try:
            minified = json_text.minify(json_text.utf8(text))
        except (msgspec.DecodeError, RecursionError):
            return self._redact(text)
        texts = _Texts(self._redact, ())
        value = texts.in_value(minified)
        redacted = _with_keys(value, texts.renamed_keys())
        return text if redacted == minified else redacted.decode()


def _with_keys(value: bytes, renamed: Mapping[str, str]) -> bytes:
    def new(written: bytes, is_key: bool) -> bytes | None:
        key = renamed.get(_decoded(written)) if is_key else None
        return None if key is None else _encoded(key)

    return json_text.replace_strings(value, new) if renamed else value


def _decoded(written: bytes) -> str:
    if b"\\" not in written:
        return written[1:-1].decode()
    try:
        return msgspec.json.decode(written, type=str)
    except msgspec.DecodeError:  # half a surrogate pair
        return str(json.loads(written))


def _encoded(text: str) -> bytes:
    return json_text.as_string(json_text.utf8(text))
