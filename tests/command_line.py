"""The command line in this process: from arguments to output, with a stage handed in."""

from typing import Any

from local import main
from local.stage import Stage


def run(*arguments: str, stage: Stage) -> Any:
    """What the command returns that these arguments call, on this stage whatever they name."""
    command, bound, injected = main._commands.parse_args(
        arguments, exit_on_error=False, print_error=False
    )
    return command(*bound.args, **bound.kwargs, **dict.fromkeys(injected, lambda *_: stage))
