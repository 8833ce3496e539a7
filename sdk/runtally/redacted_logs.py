"""What loggers are given, redacted before any handler gets to see it."""

import functools
import logging
import traceback
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from runtally.redaction import Redactor

NO_TEXT: Final = {"runtally_no_text": True}
"""The `extra` of a record that quotes nothing, and is told as it is: that redacting fails."""


class _Messages(logging.Filter):
    """Redacts messages; arguments first: a warning cuts what it quotes, and half an address is none
    that a rule would know."""

    def __init__(self) -> None:
        super().__init__()
        self._redactors: weakref.WeakSet[Redactor] = weakref.WeakSet()

    def keep(self, redactor: "Redactor", loggers: Iterable[str]) -> None:
        """Redact what they are given for as long as the redactor lives."""
        self._redactors.add(redactor)
        for name in loggers:
            logging.getLogger(name).addFilter(self)  # which takes each filter once

    def filter(self, record: logging.LogRecord) -> bool:
        redactors = list(self._redactors)
        if not redactors or record.__dict__.keys() & NO_TEXT.keys():
            return True
        redact = functools.partial(_redacted_by, redactors)
        arguments = record.args if isinstance(record.args, tuple) else ()
        record.args = tuple(
            given if isinstance(given, (int, float)) else redact(str(given)) for given in arguments
        )
        record.msg, record.args = redact(self._message(record)), None
        return True

    def _message(self, record: logging.LogRecord) -> str:
        return record.getMessage()


class _AllTold(_Messages):
    """Exceptions, too, as part of the message: whatever formats them would tell their words."""

    def _message(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if record.exc_info and record.exc_info[0]:
            message += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip()
        record.exc_info = None
        return message


def _redacted_by(redactors: Iterable["Redactor"], text: str) -> str:
    for redactor in redactors:
        text = redactor.text(text)
    return text


messages: Final = _Messages()
all_told: Final = _AllTold()
