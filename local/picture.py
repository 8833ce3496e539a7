"""What the demo prints as a picture, for the README."""

import html
import io
import re
from collections.abc import Callable
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console

_WIDTH = 110
_TEXT = re.compile(r'(?P<before>textLength=")(?P<length>[\d.]+)(?P<after>"[^>]*>)(?P<text>[^<]*)')
_WEB_FONTS = re.compile(r"@font-face \{.*?\}", re.DOTALL)


def save_picture(draw: Callable[[Console], None], path: Path) -> None:
    """Write what `draw` prints as SVG that loads nothing from elsewhere."""
    recorder = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
    draw(recorder)
    picture = _WEB_FONTS.sub("", recorder.export_svg(title="make demo"))
    picture = _TEXT.sub(_as_wide_as_on_a_terminal, picture)
    path.write_text(picture.replace("Fira Code", "ui-monospace, SFMono-Regular, Menlo, Consolas"))


def _as_wide_as_on_a_terminal(found: re.Match[str]) -> str:
    """Rich gives every character one cell; a Chinese one takes two."""
    text = html.unescape(found["text"])
    length = float(found["length"]) * cell_len(text) / max(1, len(text))
    return f"{found['before']}{length:g}{found['after']}{found['text']}"
