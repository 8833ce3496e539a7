"""The demo's tables as a picture, for the README."""

import io
import re
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from local.results import RunResult
from local.tables import table_of

_WEB_FONTS = re.compile(r"@font-face \{.*?\}", re.DOTALL)


def save_picture(results: Sequence[RunResult], path: Path) -> None:
    """Write the first and the last run's table as SVG that loads nothing from elsewhere."""
    recorder = Console(record=True, width=94, file=io.StringIO(), force_terminal=True)
    for result in (results[0], results[-1]):
        recorder.print(table_of(result), "")
    picture = _WEB_FONTS.sub("", recorder.export_svg(title="make demo"))
    path.write_text(picture.replace("Fira Code", "ui-monospace, SFMono-Regular, Menlo, Consolas"))
