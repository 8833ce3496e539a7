"""What the demo prints as a picture, for the README."""

import io
import re
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

_WIDTH = 110
_WEB_FONTS = re.compile(r"@font-face \{.*?\}", re.DOTALL)


def save_picture(draw: Callable[[Console], None], path: Path) -> None:
    """Write what `draw` prints as SVG that loads nothing from elsewhere."""
    recorder = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
    draw(recorder)
    picture = _WEB_FONTS.sub("", recorder.export_svg(title="make demo"))
    path.write_text(picture.replace("Fira Code", "ui-monospace, SFMono-Regular, Menlo, Consolas"))
