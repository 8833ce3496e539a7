"""What becomes of open outboxes when the process ends or forks."""

import atexit
import logging
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from runtally.outbox import Outbox

_log = logging.getLogger("runtally")

EXIT_FLUSH_S: Final = 10.0

open_outboxes: set["Outbox"] = set()
"""Those with a background thread; held here, so that a Recorder nobody refers to still sends."""


def _close_all() -> None:
    for outbox in list(open_outboxes):
        if unsent := outbox.close(EXIT_FLUSH_S):
            _log.warning("runtally: left at exit: %s", unsent)


def _begin_in_child() -> None:
    for outbox in list(open_outboxes):
        outbox.begin()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)
