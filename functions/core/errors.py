"""The ways in which work fails; a handler has one branch for each."""

from runtally.wire import Rejected

__all__ = [
    "Conflict", "Forbidden", "NewerSchema", "NotFound", "Rejected", "TooLarge", "Unavailable",
]  # fmt: skip


class Unavailable(Exception):  # noqa: N818 - the fact, as the handlers read it
    """A service did not answer, or answered that it cannot now. Nothing is settled; trying again is
    safe."""


class NewerSchema(Unavailable):
    """An item was written by newer code, and this code may misread it. Nothing is settled: after an
    upgrade, trying again is all that it takes."""


class NotFound(Exception):  # noqa: N818
    """There is no such thing, or not for this tenant: an answer never tells which."""


class Conflict(Exception):  # noqa: N818
    """What is there already differs from what was asked for under the same name, which is in
    `field`."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}")
        self.field = field
        self.detail = detail


class Forbidden(Exception):  # noqa: N818
    """Named in `field` is what belongs to another tenant than the key."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}")
        self.field = field
        self.detail = detail


class TooLarge(Exception):  # noqa: N818
    """What was sent is larger than can be accepted; says what to do about it."""
