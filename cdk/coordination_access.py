"""What a worker may do on the coordination cache; on its own, so that nobody has to start CDK."""

from typing import Final

_COMMANDS: Final = (
    "eval evalsha"
    # Inside of scripts, which may do no more than who calls them.
    " time hget hmget hset hdel hkeys del pexpire"
    # What the client of a cluster asks for itself. HELLO and AUTH are open to everybody.
    " cluster|slots command"
)

ACCESS_STRING: Final = " ".join(
    ["on", "~runtally:*", "-@all", *(f"+{each}" for each in _COMMANDS.split())]
)
"""Our keys alone, and each command by its name. None of them speaks to a channel, all of which
ElastiCache opens to everybody. https://valkey.io/topics/acl/"""
