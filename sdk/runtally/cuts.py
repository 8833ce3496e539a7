"""Where one message ends and the next begins, and the sealing of each.

A message holds events of one run. It is cut 10 seconds after its first event, before it would pass
256 KB, at 100 events, and at once when a run starts or ends. Sealed once, it is sent as the same
bytes however often: that is what makes a second delivery harmless.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from runtally import wire

AFTER_S: Final = 10.0
"""A message is an object in S3, which is half of what a step costs: the longer it waits for others,
the cheaper. With 8 calls at once a message of 5 seconds has 6 steps, one of 10 has 10."""
AT_BYTES: Final = 256 * 1024
AT_EVENTS: Final = 100


class Sealed(NamedTuple):
    """A message as it travels: its body, and how many events that is."""

    body: bytes
    events: int


class Cut(NamedTuple):
    """The events of one message to be, in order."""

    head: wire.Head
    lines: list[bytes]

    @property
    def size(self) -> int:
        return sum(len(line) for line in self.lines)

    def seal(self) -> Sealed:
        return Sealed(wire.seal(self.head, self.lines), len(self.lines))


def sealed_size(line: bytes) -> int:
    """What a line takes in a sealed body, with its comma; see wire.seal for the two characters."""
    if line.isascii():
        return len(line) + 1
    return len(line) + 1 + 3 * (line.count(b"\xef\xbf\xbe") + line.count(b"\xef\xbf\xbf"))


def head_size(head: wire.Head) -> int:
    """What a sealed body takes besides its lines."""
    return len(msgspec.json.encode(head)) + len(b',"events":[]')


@dataclass(slots=True)
class _Open:
    since: float
    size: int
    lines: list[bytes] = field(default_factory=list)


class Packer:
    """Collects lines run by run and says what is to be cut. Times are seconds of one monotonic
    clock.

    Not safe among threads: its owner locks.
    """

    def __init__(self, after_s: float = AFTER_S) -> None:
        self._after_s = after_s
        self._open: dict[wire.Head, _Open] = {}

    def add(self, head: wire.Head, line: bytes, now: float, *, at_once: bool = False) -> list[Cut]:
        """Take a line; returns the messages that are complete now, in order: none, one or two."""
        size = sealed_size(line)
        cuts = []
        batch = self._open.get(head)
        if batch is not None and batch.size + size > AT_BYTES:
            cuts.append(self._cut(head))
            batch = None
        if batch is None:
            batch = self._open[head] = _Open(since=now, size=head_size(head))
        batch.lines.append(line)
        batch.size += size
        if at_once or batch.size >= AT_BYTES or len(batch.lines) >= AT_EVENTS:
            cuts.append(self._cut(head))
        return cuts

    def take_due(self, now: float) -> list[Cut]:
        """Cut what has waited long enough."""
        due = [head for head, batch in self._open.items() if batch.since + self._after_s <= now]
        return [self._cut(head) for head in due]

    def take_all(self) -> list[Cut]:
        return [self._cut(head) for head in list(self._open)]

    def next_due(self) -> float | None:
        """When `take_due` will have something; None while nothing waits."""
        # Insertion order is order of age: a batch is dropped when it is cut, and begun anew.
        return next((batch.since + self._after_s for batch in self._open.values()), None)

    def _cut(self, head: wire.Head) -> Cut:
        return Cut(head, self._open.pop(head).lines)
