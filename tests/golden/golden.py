"""The golden vectors of this folder, for tests in Python."""

from __future__ import annotations

import json
import pathlib
from typing import Any


def golden(name: str) -> Any:
    """What <name>.json holds."""
    return json.loads(pathlib.Path(__file__).with_name(f"{name}.json").read_text())
