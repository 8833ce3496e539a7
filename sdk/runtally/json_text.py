"""JSON as text: minified, and mended where parsers disagree, without touching a single number.

Payloads pass through as bytes, because decoding and encoding again would change them:
9007199254740993 is not a double, 5,000 digits are not a Python `int`, a repeated key is not a
`dict`. What a strict parser would refuse is mended on the text: a lone surrogate becomes U+FFFD,
`NaN` and `Infinity` in a payload become strings, and a payload nested deeper than `MAX_DEPTH`
becomes one string that holds its text.
"""

import json
import re
from collections.abc import Callable, Iterator

import msgspec

MAX_DEPTH = 200
_LEVELS_DROPPED = 10

# A string that never ends is taken to the end of the text, or finding that out again from each of
# its quotes would take time squared.
_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'
_STRINGS = re.compile(_STRING, re.DOTALL)
# Each alternative begins with a character of its own: that is what lets `re` skip to the next one.
_STRUCTURE = re.compile(_STRING + rb"|\[|\]|\{|\}|:|,", re.DOTALL)
_NESTING = re.compile(_STRING + rb"|\[|\]|\{|\}", re.DOTALL)
_NOT_FINITE = re.compile(_STRING + rb"|NaN|Infinity|-Infinity", re.DOTALL)
_QUOTED_OR_BRACKETS = re.compile(rb'"[^"]*"?|[\[{]+|[\]}]+')
_ALL_BUT_BRACKETS_AND_QUOTES = bytes(set(range(256)) - set(b'[]{}"'))
_SURROGATES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair: one character
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # half of one
    rb"|\\.",  # any other escape: a backslash that is escaped itself starts nothing
    re.DOTALL,
)

_A_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def minify(text: bytes) -> bytes:
    """The same JSON without white space between tokens; every token stays as it was written.

    Raises msgspec.DecodeError when it is not JSON, RecursionError when it is nested too deep to
    tell.
    """
    return msgspec.json.format(text, indent=-1)


def deeper_than(text: bytes, limit: int = MAX_DEPTH) -> bool:
    """Whether brackets nest more than `limit` levels; counts first: few texts have that many.

    Then drops all but brackets and the quotes around some of them, in passes that cost a copy of
    the text at most, where matching string by string would cost many times its size. What is left
    of a wide payload goes by dropping innermost pairs: each time it is one level lower at most.
    """
    if _brackets(text) <= limit:
        return False
    unescaped = text.replace(rb"\\", b"").replace(rb"\"", b"")
    bare = unescaped.translate(None, _ALL_BUT_BRACKETS_AND_QUOTES).replace(b'""', b"")
    flatter = bare
    for levels in range(2, _LEVELS_DROPPED, 2):
        flatter = flatter.replace(b"{}", b"").replace(b"[]", b"")
        if _brackets(flatter) + levels <= limit:
            return False
    depth = 0
    for run in _QUOTED_OR_BRACKETS.finditer(bare):
        first = bare[run.start()]
        if first in b"[{":
            depth += run.end() - run.start()
            if depth > limit:
                return True
        elif first in b"]}":
            depth -= run.end() - run.start()
    return False


def _brackets(text: bytes) -> int:
    return text.count(b"{") + text.count(b"[")


def utf8(text: str) -> bytes:
    """UTF-8 of any `str`; lone surrogates, which have no encoding, become U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def as_string(text: bytes) -> bytes:
    """A JSON string whose value is `text`."""
    return utf8(json.dumps(text.decode("utf-8", "replace"), ensure_ascii=False))


def mend_strings(text: bytes) -> bytes:
    """JSON in which every half of a surrogate pair is U+FFFD."""
    if rb"\u" not in text or not _A_SURROGATE.search(text):
        return text
    return _replace(_SURROGATES, text, lambda m: rb"\ufffd" if m[1] else None)


def mend_value(text: bytes) -> bytes:
    """One JSON value that every strict parser accepts: the three mendings above."""
    if deeper_than(text):
        return as_string(text)
    if b"NaN" in text or b"Infinity" in text:
        text = _replace(
            _NOT_FINITE, text, lambda m: None if m[0].startswith(b'"') else b'"' + m[0] + b'"'
        )
    return mend_strings(text)


def _replace(
    pattern: re.Pattern[bytes], text: bytes, new: Callable[[re.Match[bytes]], bytes | None]
) -> bytes:
    """As `pattern.sub`, where None leaves a match alone, and at no cost in memory."""
    pieces: list[bytes] = []
    done = 0
    for match in pattern.finditer(text):
        if (replacement := new(match)) is not None:
            pieces += [text[done : match.start()], replacement]
            done = match.end()
    return b"".join([*pieces, text[done:]]) if pieces else text


def replace_strings(text: bytes, new: Callable[[bytes, bool], bytes | None]) -> bytes:
    """Minified JSON with other strings: `new` gets each as it is written, and whether it is a key.

    None leaves it as it is. The same object where all are left; every other token stays as it was.
    """
    return _replace(_STRINGS, text, lambda m: new(m[0], text[m.end() : m.end() + 1] == b":"))


def mend_message(body: bytes) -> tuple[bytes, list[bytes]]:
    """Take a message body apart: the envelope without its events, and each event, mended.

    Works on text that no parser would take whole, so that one bad event does not cost its
    neighbours. What it returns is still to be parsed: only payloads and surrogates are mended, so
    an event with `NaN` in a field fails its own parse, and so does one that is no JSON at all.
    """
    scan = _Scan(body)
    key = last = b""
    while token := scan.take():
        if token == b":" and scan.depth == 1:
            key = last
        elif token == b"[" and scan.depth == 2 and key == b'"events"':
            opened = scan.at + 1
            events = list(_take_events(body, scan))
            return body[:opened] + body[scan.at :], events
        last = token
    return body, []


class _Scan:
    """The strings and the structure of a text, one by one; numbers and words are passed over."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._next = 0
        self.at = 0
        """Where the token that was taken last begins."""
        self.depth = 0
        """How deep the text is nested behind it."""

    def take(self, pattern: re.Pattern[bytes] = _STRUCTURE) -> bytes:
        """The next token that the pattern knows; nothing at the end."""
        match = pattern.search(self._text, self._next)
        if match is None:
            self.at = len(self._text)
            return b""
        self.at, self._next = match.span()
        token = match[0]
        self.depth += (token in b"{[") - (token in b"}]")
        return token


def _take_events(body: bytes, scan: _Scan) -> Iterator[bytes]:
    """The elements of the array whose bracket was just read, up to its closing one."""
    level = scan.depth
    start = scan.at + 1
    separated = False
    last = b""
    payload: slice | None = None
    payload_from: int | None = None
    while token := scan.take(_NESTING if payload_from and scan.depth > level + 1 else _STRUCTURE):
        depth = scan.depth - level
        if payload_from and (depth == 0 or (depth == 1 and token == b",")):
            payload, payload_from = slice(payload_from, scan.at), None
        if depth < 0 or (depth == 0 and token == b","):
            event = _mend_event(body, slice(start, scan.at), payload)
            separated = separated or token == b","
            if event or separated:  # nothing between two commas is an element too, a malformed one
                yield event
            if depth < 0:
                return
            start, payload = scan.at + 1, None
        elif token == b":" and depth == 1 and last == b'"payload"':
            payload, payload_from = None, scan.at + 1  # of two, the last one counts
        last = token


def _mend_event(body: bytes, event: slice, payload: slice | None) -> bytes:
    if payload is None:
        mended = mend_strings(body[event])
    else:
        before, after = body[event.start : payload.start], body[payload.stop : event.stop]
        mended = mend_strings(before) + mend_value(body[payload].strip()) + mend_strings(after)
    try:
        return minify(mended)
    except (msgspec.DecodeError, RecursionError):
        return mended.strip()
