"""The code blocks of docs/integrations.md."""

import re
from dataclasses import dataclass
from typing import Final

from local.paths import ROOT

PAGE: Final = ROOT / "docs" / "integrations.md"
_BLOCK: Final = re.compile(
    r"\(\.\./examples/integrations/(?P<example>[^)]+)\)"
    r"|^```(?P<language>\w+)\n(?P<code>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    example: str
    """The program that was named last before it."""


def blocks() -> list[Block]:
    found: list[Block] = []
    example = ""
    for match in _BLOCK.finditer(PAGE.read_text("utf-8")):
        if match["example"]:
            example = match["example"]
        else:
            found.append(Block(match["language"], match["code"], example))
    return found


def command(beginning: str) -> str:
    """The only block of shell commands in which a line begins so."""
    (code,) = (
        block.code
        for block in blocks()
        if block.language == "sh" and f"\n{beginning}" in f"\n{block.code}"
    )
    return code
