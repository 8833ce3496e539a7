"""What a call comes to on the server, by the server's own counts."""

import secrets
from typing import Any, Final, NamedTuple, cast

import valkey

from benchmarks.coordination.operations import Operation, coordinator, pairs

_ROUNDS: Final = 60
_CALLS: Final = 50
_SENT: Final = frozenset({"evalsha", "eval"})


class Counts(NamedTuple):
    """Since the server started. `us` is the time of commands, by name."""

    bytes_in: int
    bytes_out: int
    calls: dict[str, int]
    us: dict[str, int]

    @classmethod
    def of(cls, info: dict[str, Any]) -> "Counts":
        """From INFO, as valkey-py reads it."""
        commands = {
            name.removeprefix("cmdstat_"): stat
            for name, stat in info.items()
            if name.startswith("cmdstat_") and name != "cmdstat_info"
        }
        return cls(
            info["total_net_input_bytes"],
            info["total_net_output_bytes"],
            {name: stat["calls"] for name, stat in commands.items()},
            {name: stat["usec"] for name, stat in commands.items()},
        )


def counted(url: str) -> list[dict[str, Any]]:
    """Of every operation, ours and bare, by one client alone."""
    run_id = f"run-{secrets.token_hex(4)}"
    with (
        coordinator(url) as opening,
        opening.open(run_id) as state,
        valkey.Valkey.from_url(url) as bare,
    ):
        operations = {each.name: each for pair in pairs(state, bare, 0) for each in pair}
        rounds = [
            {name: _round(operation, bare) for name, operation in operations.items()}
            for _ in range(1 + _ROUNDS)
        ]
    # Of the least time, to which whatever else the machine does only adds; not the first round.
    return [
        {"name": name} | min((each[name] for each in rounds[1:]), key=_server_us)
        for name in operations
    ]


def _round(operation: Operation, client: valkey.Valkey) -> dict[str, Any]:
    operation.before()
    silent, before = _now(client), _now(client)
    for _ in range(_CALLS):
        operation.work()
    return difference(silent, before, _now(client), _CALLS)


def _server_us(counted: dict[str, Any]) -> float:
    us: float = counted["server_us"]
    return us


def difference(silent: Counts, before: Counts, after: Counts, calls: int) -> dict[str, Any]:
    """Of one call. Between the first two nothing happened, so that what they differ by is what
    asking for the counts itself takes."""
    used = {
        name: round((count - before.calls.get(name, 0)) / calls, 2)
        for name, count in after.calls.items()
        if count > before.calls.get(name, 0)
    }
    # The time of a script is that of what it calls, and its own.
    sent = {name: count for name, count in used.items() if name in _SENT} or used
    within = {name: count for name, count in used.items() if name not in sent}
    us = sum(after.us[name] - before.us.get(name, 0) for name in sent)
    of_asking = [one - other for one, other in zip(before[:2], silent[:2], strict=True)]
    bytes_in, bytes_out = (
        round((one - other - asking) / calls)
        for one, other, asking in zip(after[:2], before[:2], of_asking, strict=True)
    )
    return {
        "requests": round(sum(sent.values())),
        "bytes_in": bytes_in,
        "bytes_out": bytes_out,
        "calls": round(sum(within.values())),
        "within": within,
        "server_us": round(us / calls, 1),
    }


def _now(client: valkey.Valkey) -> Counts:
    return Counts.of(cast("dict[str, Any]", client.info("everything")))
