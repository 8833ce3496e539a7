"""What the documents tell people to type, as the command line's own parser takes it, and where they
lead."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from functions.core import lake
from local import main
from local.paths import ROOT
from local.reading import TenantOptions

DOCUMENTS: Final = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
RUNBOOK: Final = ROOT / "docs/operations.md"


def in_blocks(document: Path) -> Iterator[str]:
    """Lines of fenced blocks; an ellipsis after a word says that more of its kind may follow."""
    text = document.read_text()
    for block in re.findall(r"^```[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        typed = r'^(?:\w+=\$\()?(?:uv run )?runtally ((?:"[^"]*"|[^#|)\n])*)'
        for found in re.findall(typed, block, re.MULTILINE):
            for command in found.split(", uv run runtally "):
                yield re.sub(r"(?<=\w)…", "", command).strip()


def to_be_typed(document: Path) -> Iterator[str]:
    """Those in blocks, and those in a sentence that have arguments: others name a command."""
    yield from in_blocks(document)
    prose = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    for found in re.findall(r"`runtally ([^`]*)`", prose):
        if re.search(r" (--|[A-Z]{2,})", found):
            yield found.replace("\n", " ")


def parsed(command: str) -> dict[str, Any]:
    """Its arguments by name, without running it. Raises CycloptsError."""
    _, bound, _ = main._commands.parse_args(
        shlex.split(command), exit_on_error=False, print_error=False
    )
    bound.apply_defaults()
    return dict(bound.arguments)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_links_lead_somewhere(document: Path) -> None:
    """Files, and headings in them, as GitHub makes addresses of them."""
    for place in re.findall(r"\]\((?!https?:|#)([^)]+)\)", document.read_text()):
        name, _, heading = place.partition("#")
        target = document.parent / name
        assert target.exists(), place
        if heading:
            titles = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            ids = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]
            assert heading in ids, place


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_commands_in_documents_can_be_typed_as_they_stand(document: Path) -> None:
    for command in to_be_typed(document):
        if not command.endswith(" …"):  # names a group of commands
            parsed(command)


def test_every_column_of_the_lake_is_described() -> None:
    text = (ROOT / "docs/lake.md").read_text()
    for table in lake.TABLES:
        described = text.partition(f"\n### {table.name}\n")[2].partition("\n##")[0]
        names = re.findall(r"^\| `(\w+)` \| (\S+) \|", described, re.MULTILINE)
        assert names == [(column.name, column.kind) for column in table.columns]


def test_commands_of_the_runbook_reach_the_stage_and_the_tenant_that_are_meant() -> None:
    commands = list(to_be_typed(RUNBOOK))
    assert len(commands) > 10
    for command in commands:
        assert "--stage" in command, command
        at = parsed(command).get("at")
        assert not isinstance(at, TenantOptions) or at.tenant, command
