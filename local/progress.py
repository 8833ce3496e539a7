"""Telling the person at the terminal what is going on; without a terminal, one line a step."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

console: Final = Console(stderr=True)
"""Standard error, so that standard output holds results alone."""


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Say what is being done, and how long it took."""
    started = time.monotonic()
    with console.status(what):
        yield
    console.print(f"[green]✓[/] {what} [dim]{time.monotonic() - started:.1f} s[/]")


@contextmanager
def bar() -> Iterator[Progress]:
    """A progress bar that leaves nothing behind when it is done."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        yield progress
