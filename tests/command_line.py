"""The command line in this process: from arguments to output, with a stage handed in."""

from typing import Any

from local import main
from local.stage import Stage


def run(*arguments: str, stage: Stage, **others: Any) -> Any:
    """What the command returns that these arguments call, on this stage whatever they name;
    `others` are what else is handed in, by name."""
    command, bound, injected = main._commands.parse_args(
        arguments, exit_on_error=False, print_error=False
    )
    given = {**dict.fromkeys(injected, lambda *_: stage), **others}
    return command(*bound.args, **bound.kwargs, **given)
