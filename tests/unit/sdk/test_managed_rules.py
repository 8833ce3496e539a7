"""The managed rules: what they find, what they leave, and that no text takes them long."""

import itertools
import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtally.managed_rules import redact

EMAIL, KEY, CARD = "[redacted:email]", "[redacted:key]", "[redacted:card]"
HEX = "0123456789abcdef"
ALNUM = string.ascii_letters + string.digits


def chars(count: int, of: str = ALNUM) -> str:
    return "".join(itertools.islice(itertools.cycle(of), count))


@pytest.mark.parametrize(
    "address",
    [
        "ada@example.com",
        "ada.king+notes_1@mail.example.co.uk",
        "o'brien@example.ie",
        "ada@[192.0.2.7]",
        "ada@[IPv6:2001:db8::1]",
        "ada@xn--bcher-kva.example",
        "jürgen@bücher.example",
        "用户@例子.中国",
        "संपर्क@डाटा.भारत",
        "почта@пример.рф",
        "ada＠example．com",
        '"ada king"@example.com',
        '"a@b"@example.com',
        r"ada\u0040example.com",
        r"ada\\u0040example.com",
        r"j\u00fcrgen@b\u00fccher.example",
        "ada%40example.com",
        "ada&#64;example.com",
        "{a|b}@example.com",
        "a/@example.com",
    ],
)
@pytest.mark.parametrize("around", ["{}", "<{}>", "to {}, please", "mailto:{}?subject=x", "({})\n"])
def test_addresses(address: str, around: str) -> None:
    assert redact(around.format(address)) == around.format(EMAIL)


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("https://x.example/u?to=ada@example.com&x=1", f"https://x.example/u?to={EMAIL}&x=1"),
        ("https://x.example/users/ada@example.com", f"https://x.example/users/{EMAIL}"),
        ("{'to': 'ada@example.com'}", f"{{'to': '{EMAIL}'}}"),
        ("**ada@example.com**", f"**{EMAIL}**"),
        (r'{"a": "\nada@example.com\n"}', rf'{{"a": "\n{EMAIL}\n"}}'),
        ("a@example.com/b@example.org+c@example.net", f"{EMAIL}/{EMAIL}+{EMAIL}"),
    ],
)
def test_what_is_around_an_address_stays(text: str, redacted: str) -> None:
    assert redact(text) == redacted


# In pieces: a whole one would be found by those who look through this repository.
KEYS = {
    "aws": "AK" + "IA" + chars(16, "ABCDEFGH12345678"),
    "aws secret": 'aws_secret_key = "' + chars(40) + '"',
    "azure": "Account" + "Key=" + chars(86) + "==",
    "discord": "M" + chars(23) + "." + chars(6) + "." + chars(27),
    "github": "gh" + "p_" + chars(36),
    "github fine-grained": "github" + "_pat_" + chars(82),
    "gitlab": "gl" + "pat-" + chars(20),
    "gitlab routable": "gl" + "pat-" + chars(60),
    "gitlab agent": "gl" + "agent-" + chars(50),
    "mailchimp": chars(32, HEX) + "-us" + "12",
    "pypi": "py" + "pi-AgEIcHlwaS5vcmc" + chars(70),
    "sendgrid": "S" + "G." + chars(22) + "." + chars(43),
    "slack": "xo" + "xb-123456789-123456789-" + chars(24),
    "slack hook": "https://hooks.slack" + ".com/services/T" + chars(8) + "/B" + chars(8) + "/x1",
    "square": "sq0" + "csp-" + chars(43),
    "stripe": "sk_" + "live_" + chars(24),
    "stripe, longer": "sk_" + "live_" + chars(99),
    "telegram": "123456789" + ":AA" + chars(33),
    "twilio": "A" + "C" + chars(32, HEX),
    "openai": "s" + "k-proj-" + chars(74) + "T3BlbkFJ" + chars(74),
    "anthropic": "s" + "k-ant-api03-" + chars(80) + "-" + chars(12),
    "google": "AI" + "za" + chars(35),
    "google client": "GOC" + "SPX-" + chars(28),
    "hugging face": "h" + "f_" + chars(34),
    "jwt": "ey" + "J" + chars(20) + ".ey" + "J" + chars(30) + "." + chars(43),
}


ESCAPES = (
    r"\n{}\n",
    r"\u003e{}\u003c/td",
    r"\\u003e{}\\u003c/td",
    r"\x3e{}\x3c",
    "key%3D{}%26",
    "%20{}%20",
    "\x1b[m{}\x1b[0m",
    "\x1b[1m{}\x1b[0m",
    "\x1b[32m{}\x1b[0m",
    r"\u001b[1;32m{}\u001b[0m",
    r"\x1b[38;5;196m{}\x1b[0m",
)
"""What ends in a letter or a digit, but is no part of the word that follows."""


# Not Telegram's: they begin with digits, and take those of an escape along.
@pytest.mark.parametrize("name", [name for name in KEYS if name not in {"aws secret", "telegram"}])
@pytest.mark.parametrize("around", ESCAPES)
def test_keys_behind_an_escape(name: str, around: str) -> None:
    assert redact(around.format(KEYS[name])) == around.format(KEY)


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("around", ["{}", "key: {}\n", '"{}"', "Use '{}'.", r"\n{}\n", "{}, and"])
def test_keys(name: str, around: str) -> None:
    assert redact(around.format(KEYS[name])) == around.format(KEY)


def test_keys_in_a_row_all_go() -> None:
    for prefix, size in (("gl" + "pat-", 20), ("gl" + "imt-", 25), ("gl" + "agent-", 50)):
        assert redact(f"Use {(prefix + chars(size)) * 40}.") == f"Use {KEY}."


def test_the_password_of_a_url_and_what_follows_bearer() -> None:
    assert redact("postgres://app:s3cret@db/orders") == f"postgres://{KEY}@db/orders"
    assert redact("https://u:p4ss@x.example/y") == f"https://{KEY}@x.example/y"
    for bearer in ("Bearer", "bearer", "BEARER", "BeaRer"):
        assert redact(f"Authorization: {bearer} {chars(60)}") == f"Authorization: {bearer} {KEY}"


@pytest.mark.parametrize("newline", ["\n", r"\n"])
def test_private_keys_whole(newline: str) -> None:
    lines = ("-----BEGIN RSA PRIVATE" + " KEY-----", chars(64), "-----END RSA PRIVATE KEY-----")
    written = newline.join(lines)
    assert redact(f"a {written} b {written} c") == f"a {KEY} b {KEY} c"
    assert redact(f"a {newline.join(lines[:2])}") == f"a {KEY}"


@pytest.mark.parametrize(
    "number",
    [
        "4111111111111111",
        "4111 1111 1111 1111",
        "4111-1111-1111-1111",
        "4111\u00a01111\u00a01111\u00a01111",
        "4111\u202f1111\u202f1111\u202f1111",
        "3782\u00a0822463\u00a010005",
        "5555555555554444",
        "2223003122003222",
        "378282246310005",
        "3782 822463 10005",
        "30569309025904",
        "6011111111111117",
        "3530111333300000",
        "6200000000000005",
    ],
)
def test_card_numbers(number: str) -> None:
    assert redact(f"card {number}, 12/27") == f"card {CARD}, 12/27"
    assert redact(f"{number} 12/27 123") == f"{CARD} 12/27 123"
    for around in ESCAPES:
        assert redact(around.format(number)) == around.format(CARD)
    wrong = number[:-1] + str((int(number[-1]) + 1) % 10)
    assert redact(f"card {wrong}") == f"card {wrong}"


@pytest.mark.parametrize(
    "text",
    [
        "@pytest.mark.parametrize and @types/node@18.2.0, or react@19.1.0",
        "a@b, x @ y.z, 50 @ 3.20, me@localhost, @ada on x",
        "1764000000000000000-0a1b2c3d and 0.4111111111111111 and a4111111111111111",
        "2015 2016 2017 2018",
        "task-runner-with-a-name-of-17-words-and-so-on, risk-0123456789-0123456789",
        "u003e4111111111111111 and 204111111111111111 and m4111111111111111 or 1m4111111111111111",
        "d41d8cd98f00b204e9800998ecf8427e 550e8400-e29b-41d4-a716-446655440000",
        "https://example.com/a?b=c#d, //host:8080/path, bearer of bad news: internationalization",
        "读测试，再改一处。 🌍",
    ],
)
def test_what_is_nothing_of_the_kind_stays(text: str) -> None:
    assert redact(text) == text


@given(st.emails(), st.text(), st.text())
def test_no_address_is_left(address: str, before: str, after: str) -> None:
    assert address not in redact(f"{before} {address} {after}")
    assert address not in redact(json.dumps([before, address, after]))


PIECES = (
    "@", "a", "b.cc", " ", "\\n", "4111111111111111", "[", "]", ":", "://", "redacted", ".", "1",
    "%40", "%3D", "\\u003e", "[2m", *KEYS.values(),
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=7))
def test_what_is_redacted_stays_as_it_is(pieces: list[str]) -> None:
    once = redact("".join(pieces))
    assert redact(once) == once


HOSTILE = [
    "a@", "a@a.", "a@a.bb+", "%40a.", r"\u0040a.", '"@a.bb', "eyJ", "eyJaaaaaaaa.", "sk-",
    "xoxb-1-", "4 4 4 4 ", "4111 1111 1111 1112 ", "4111-", "4", "%204", "glagent-",
    'awskey"', "\\", "M", "://a:b", "-----BEGIN PRIVATE KEY-----", "0123456789abcdef-us",
    "earer ", "123456789:AA", r"0000u\\", "{|}=", "https://hooks.slack.com/services/T",
]  # fmt: skip


@pytest.mark.timeout(60)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_megabyte_ends(hostile: str) -> None:
    """What took time squared would not within minutes."""
    redact(hostile * (1_000_000 // len(hostile)))
