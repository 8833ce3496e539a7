"""The files in events/: what Lambda really hands to each function."""

import json
from pathlib import Path
from typing import Any

EVENTS = Path(__file__).parents[1] / "events"


def event(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    return loaded
