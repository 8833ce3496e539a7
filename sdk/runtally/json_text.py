"""JSON as text: minified, and mended where parsers disagree, without touching a single number.

Payloads pass through as bytes, because decoding and encoding again would change them:
9007199254740993 is not a double, 5,000 digits are not a Python `int`, a repeated key is not a
`dict`. What a strict parser would refuse is mended on the text: a lone surrogate becomes U+FFFD,
`NaN` and `Infinity` in a payload become strings, and a payload nested deeper than `MAX_DEPTH`
becomes one string that holds its text.
"""

import json
import re
from collections.abc import Iterator

import msgspec

MAX_DEPTH = 200

_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_STRINGS = re.compile(_STRING, re.DOTALL)
_NOT_BRACKETS = re.compile(rb"[^\[\]{}]+")
# The last alternative keeps what belongs to no token, a lone quote for instance, so that nothing
# malformed is dropped and then passes as JSON.
_TOKENS = re.compile(_STRING + rb'|[\[\]{}:,]|[^\s\[\]{}:,"]+|[^\s]', re.DOTALL)
_SURROGATES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair: one character
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # half of one
    rb"|\\.",  # any other escape: a backslash that is escaped itself starts nothing
    re.DOTALL,
)
_NOT_FINITE = {b"NaN", b"Infinity", b"-Infinity"}


def minify(text: bytes) -> bytes:
    """The same JSON without white space between tokens; every token stays as it was written.

    Raises msgspec.DecodeError when it is not JSON, RecursionError when it is nested too deep to
    tell.
    """
    return msgspec.json.format(text, indent=-1)


def deeper_than(text: bytes, limit: int = MAX_DEPTH) -> bool:
    """Whether brackets nest more than `limit` levels; counts first: few texts have that many."""
    if text.count(b"{") + text.count(b"[") <= limit:
        return False
    depth = 0
    for bracket in _NOT_BRACKETS.sub(b"", _STRINGS.sub(b"", text)):
        if bracket in b"[{":
            depth += 1
            if depth > limit:
                return True
        else:
            depth -= 1
    return False


def utf8(text: str) -> bytes:
    """UTF-8 of any `str`; lone surrogates, which have no encoding, become U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def as_string(text: bytes) -> bytes:
    """A JSON string whose value is `text`."""
    return utf8(json.dumps(text.decode("utf-8", "replace"), ensure_ascii=False))


def mend_string(token: bytes) -> bytes:
    """A JSON string token with every lone surrogate escape replaced by U+FFFD."""
    return _SURROGATES.sub(lambda m: rb"\ufffd" if m[1] else m[0], token)


def mend_value(text: bytes) -> bytes:
    """One JSON value, minified, that every strict parser accepts: the three mendings above."""
    return _mended(_TOKENS.findall(text))


def mend_message(body: bytes) -> tuple[bytes, list[bytes]]:
    """Take a message body apart: the envelope without its events, and each event, payloads mended.

    Works on text that no parser would take whole, so that one bad event does not cost its
    neighbours. What it returns is minified and still to be parsed: only payloads and lone
    surrogates are mended, so an event with `NaN` in a field fails its own parse.
    """
    head: list[bytes] = []
    events: list[bytes] = []
    depth = 0
    key = last = b""
    tokens = iter(_TOKENS.findall(body))
    for token in tokens:
        if token == b":" and depth == 1:
            key = last
        depth += (token in b"{[") - (token in b"}]")
        last = token
        head.append(mend_string(token))
        if token == b"[" and depth == 2 and key == b'"events"':
            events += _take_events(tokens)
            head.append(b"]")
            depth -= 1
    return b"".join(head), events


def _take_events(tokens: Iterator[bytes]) -> Iterator[bytes]:
    """The elements of the array whose bracket was just read, up to and with its closing one."""
    event: list[bytes] = []
    depth = 0
    separated = False
    key = last = b""
    for token in tokens:
        depth += (token in b"{[") - (token in b"}]")
        if depth < 0 or (depth == 0 and token == b","):
            separated = separated or token == b","
            if event or separated:  # nothing between two commas is an element too, a malformed one
                yield b"".join(event)
            if depth < 0:
                return
            event = []
            continue
        if token == b":" and depth == 1:
            key = last
            event.append(token)
            if key == b'"payload"':
                payload, end = _take_value(tokens)
                event += [_mended(payload), end]
                depth -= end == b"}"
            continue
        last = token
        event.append(mend_string(token))


def _take_value(tokens: Iterator[bytes]) -> tuple[list[bytes], bytes]:
    """The tokens of one value inside an object, and the comma or brace that follows it."""
    value: list[bytes] = []
    depth = 0
    for token in tokens:
        depth += (token in b"{[") - (token in b"}]")
        if depth < 0 or (depth == 0 and token == b","):
            return value, token
        value.append(token)
    return value, b""


def _mended(tokens: list[bytes]) -> bytes:
    text = b"".join(
        mend_string(token)
        if token.startswith(b'"')
        else b'"' + token + b'"'
        if token in _NOT_FINITE
        else token
        for token in tokens
    )
    return as_string(text) if deeper_than(text) else text
