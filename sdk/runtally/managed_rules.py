"""The managed rules: e-mail addresses, keys and card numbers, each replaced by what it was.

Which keys there are is known to detect-secrets. Of its rules those are taken whose keys have a form
of their own: what goes by the name of a variable, or by entropy, finds too much in prose. Added are
the keys of model vendors, which it does not know, and the ends of keys that became longer since.
Whether digits are a card's is for python-stdnum to say.

Every rule takes time linear in the text, whatever the text: hence none of detect-secrets' for JWT,
npm and OpenAI.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
from detect_secrets.plugins.basic_auth import BasicAuthDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector
from stdnum import luhn

_MOST_PASSES: Final = 4
"""Where something is gone, what stood around it may look like a key now; but a text that was made
to need many passes shall not get them."""


def redact(text: str) -> str:
    """The text with `[redacted:email]`, `[redacted:key]` and `[redacted:card]` in it."""
    for _ in range(_MOST_PASSES):
        redacted = _once(text)
        if redacted == text:
            break
        text = redacted
    return text


def _once(text: str) -> str:
    for kind, find in (("key", _keys), ("email", _emails), ("card", _cards)):
        text = _without(text, sorted(find(text)), f"[redacted:{kind}]")
    return text


def _without(text: str, found: Iterable[tuple[int, int]], mark: str) -> str:
    pieces: list[str] = []
    done = 0
    for start, end in found:
        if start >= done:
            pieces += [text[done:start], mark]
        done = max(done, end)
    return "".join([*pieces, text[done:]]) if pieces else text


# --- e-mail addresses, those in all scripts, in URLs and in JSON text that is itself a string ---

_SIGNS: Final = ("@", "%40", r"\u0040", "&#64;", "&#x40;", "＠", "﹫")
_AT: Final = re.compile("|".join(map(re.escape, _SIGNS)))
_NO_LETTER: Final = (  # of any script: spaces, controls, punctuation
    r"\s\x00-\x1f\x7f-\xbf\u2000-\u200b\u200e-\u206f\u3000-\u303f\ufe10-\ufe6f"
    r"\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
_LABEL: Final = rf"(?:[^{_NO_LETTER} -,./:-@\[-^`{{-~]|\\+u(?!0040)[0-9a-fA-F]{{4}})"
_DOMAIN: Final = re.compile(
    rf"(?:{_LABEL}+[.\u3002\uff0e\uff61])+(?![0-9]){_LABEL}{{2,}}"
    r"|\[(?:IPv6:)?[0-9a-fA-F:.]{2,}\]"
)
# What stands before the sign is matched from right to left, so on the reversed text.
_ESCAPE: Final = r"[0-9a-fA-F]{4}u\\+"
_LOCAL: Final = rf'[^{_NO_LETTER}"(),:;<>@\[\\\]'
_WORDS: Final = re.compile(
    rf"\\*(?:{_ESCAPE}|{_LOCAL}/=?&{{|}}])*(?:{_ESCAPE}|{_LOCAL} -/=?^`{{-~])"
)
_ANY: Final = re.compile(rf"\\*(?:{_ESCAPE}|{_LOCAL}])+")
_QUOTED: Final = re.compile(r'\\*"[\w.][^"\n]{0,63}(?<=\w)\\*"')


def _emails(text: str) -> Iterator[tuple[int, int]]:
    if not any(sign in text for sign in _SIGNS):
        return
    backwards = ""
    size = len(text)
    behind = 0
    for at in _AT.finditer(text):
        domain = _DOMAIN.match(text, at.end())
        if domain is not None:
            backwards = backwards or text[::-1]
            before = size - at.start()
            local = (
                _WORDS.match(backwards, before, size - behind)
                or _ANY.match(backwards, before, size - behind)
                or _QUOTED.match(backwards, before)
            )
            if local is not None:
                yield _behind_an_escape(text, size - local.end(), at.start()), domain.end()
        behind = at.end() if domain is None else domain.end()


def _behind_an_escape(text: str, start: int, at: int) -> int:
    r"""Where the address begins, in JSON text too: the `n` of a `\n` before it is none of it."""
    escaped = start > 0 and text[start - 1] == "\\" and text[start] in "nrtbf"
    return start + 1 if escaped and start + 1 < at else start


# What may stand right before a key or a card though it ends in a letter or a digit, each of a width
# that `re` can look back by: escapes in texts and in URLs, and the ends of a terminal's colours.
_ESCAPES: Final = (r"\\[nrtbf]", r"\\u[0-9a-fA-F]{4}", r"\\x[0-9a-fA-F]{2}", "%[0-9a-fA-F]{2}")
_COLOURS: Final = tuple(rf"[\[;][0-9]{{{digits}}}m" for digits in range(4))


def _apart(before: str, last: str) -> str:
    """Matches behind `last` where what precedes it is not of `before`, or ends an escape."""
    behind = "|".join(f"(?<={escape}{last})" for escape in _ESCAPES + _COLOURS)
    return f"(?:(?<!{before}{last})|{behind})"


# --- keys ---

_KEY_GOES_ON: Final = re.compile(r"[A-Za-z0-9_-]*")
_LITERAL: Final = re.compile("[A-Za-z0-9:/=_-]*")
_DETECTORS: Final[tuple[Any, ...]] = (
    AWSKeyDetector,
    AzureStorageKeyDetector,
    DiscordBotTokenDetector,
    GitHubTokenDetector,
    GitLabTokenDetector,
    MailchimpDetector,
    PypiTokenDetector,
    SendGridDetector,
    SlackDetector,
    SquareOAuthDetector,
    StripeDetector,
    TelegramBotTokenDetector,
    TwilioKeyDetector,
)
_WITHIN: Final[dict[object, str]] = {
    MailchimpDetector: "-us",
    StripeDetector: "k_live_",
    TelegramBotTokenDetector: ":AA",
}
"""What each key holds, where the rule does not begin with it."""


def _rule(detector: object, pattern: re.Pattern[str]) -> tuple[str, re.Pattern[str]]:
    """With what a text must hold for the rule to be worth asking."""
    begins = _LITERAL.match(pattern.pattern)
    # Keys are taken to their end: if that had to come soon, of many in a row each pass found one.
    rule = re.compile(pattern.pattern.removesuffix(r"(?!\w)"), pattern.flags)
    return _WITHIN.get(detector) or (begins[0] if begins else ""), rule


def _beginning(prefix: str, rest: str) -> tuple[str, re.Pattern[str]]:
    """Not within a word."""
    start = re.escape(prefix)
    return prefix, re.compile(f"{start}{_apart('[A-Za-z0-9_-]', start)}{rest}")


_TOKEN: Final = "[A-Za-z0-9_-]"  # noqa: S105 - the characters of one
_RULES: Final = (
    *(_rule(detector, pattern) for detector in _DETECTORS for pattern in detector.denylist),
    _beginning("sk-", rf"(?=[A-Za-z_-]*[0-9]){_TOKEN}{{20,}}"),  # OpenAI, Anthropic, and others
    *(
        _beginning(prefix, f"{_TOKEN}{{20,}}")
        for prefix in (
            "AIza", "GOCSPX-", "ya29.", "hf_", "gsk_", "xai-", "pplx-", "github_pat_", "glpat-",
            "npm_",
        )
    ),
    _beginning("eyJ", rf"{_TOKEN}{{8,}}\.{_TOKEN}{{8,}}(?:\.{_TOKEN}*)*"),
    (
        "bearer ",
        re.compile(r"(?i)(?<=bearer )(?=[a-z._~+/=-]{0,99}[0-9])[a-z0-9._~+/=-]{16,}"),
    ),
)  # fmt: skip
_PRIVATE_KEY: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END: Final = "-----END "
_BASIC_AUTH: Final[re.Pattern[str]] = BasicAuthDetector.denylist[0]

_CASED: Final = [(needle, rule) for needle, rule in _RULES if not rule.flags & re.IGNORECASE]
_UNCASED: Final = [(needle.lower(), rule) for needle, rule in _RULES if rule.flags & re.IGNORECASE]


def _keys(text: str) -> Iterator[tuple[int, int]]:
    lower = text.lower()
    for rules, held in ((_CASED, text), (_UNCASED, lower)):
        for needle, rule in rules:
            if needle in held:
                yield from _longest(rule, text)
    if "://" in text:
        for url in _BASIC_AUTH.finditer(text):  # `://user:password@`, whose host stays
            yield url.start() + len("://"), url.end() - len("@")
    if "-----BEGIN " in text:
        yield from _private_keys(text)


def _longest(rule: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    match = rule.search(text)
    while match is not None:
        more = _KEY_GOES_ON.match(text, match.end())
        end = more.end() if more else match.end()
        yield match.start(), end
        match = rule.search(text, end)


def _private_keys(text: str) -> Iterator[tuple[int, int]]:
    """From the first line of each to its last; to the end of the text where that is missing."""
    begin = _PRIVATE_KEY.search(text)
    while begin is not None:
        last = text.find(_END, begin.end())
        end = text.find("-----", last + len(_END)) + 5 if last >= 0 else 0
        yield begin.start(), end if end >= 5 else len(text)
        begin = _PRIVATE_KEY.search(text, end) if end >= 5 else None


# --- card numbers ---

_SPACED: Final = "[ \u00a0\u202f-]"  # U+00A0 and U+202F do not break
_CARD: Final = re.compile(
    rf"[2-6]{_apart('[0-9A-Za-z_.]', '.')}"
    r"(?:(?<=[46])|(?<=5)(?=[1-5])|(?<=2)(?=[2-7])|(?<=3)(?=[04-9]))"
    r"(?:[0-9]{13,18}"
    rf"|[0-9]{{3}}({_SPACED})[0-9]{{4}}\1[0-9]{{4}}\1[0-9]{{4}}(?:\1[0-9]{{1,3}})?"
    rf"|[0-9]{{3}}({_SPACED})[0-9]{{6}}\2[0-9]{{4,5}})(?![0-9A-Za-z_])"
)
_LENGTHS: Final = {"2": (16,), "3": (14, 15, 16), "4": (16, 19), "5": (16,), "6": (16, 17, 18, 19)}
_GROUPED: Final = 19
"""Characters of the usual card: four groups of four digits. What follows may be its expiry."""


def _cards(text: str) -> Iterator[tuple[int, int]]:
    match = _CARD.search(text)
    while match is not None:
        start, end = match.span()
        ends = dict.fromkeys((end, min(end, start + _GROUPED)))  # each is summed up but once
        card = next((n for n in ends if _is_card(text[start:n])), None)
        if card is not None:
            yield start, card
        match = _CARD.search(text, card or start + 1)


def _is_card(text: str) -> bool:
    digits = re.sub(_SPACED, "", text)
    return len(digits) in _LENGTHS[digits[0]] and bool(luhn.is_valid(digits))
