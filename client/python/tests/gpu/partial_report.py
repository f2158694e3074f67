"""What a long measurement has found so far, as JSON: whatever ends it, that much is kept."""

from __future__ import annotations

import argparse
import json
import pathlib
import platform
import sys
import time
from typing import Any

import torch

from attune.background.settings import ACCEPTABLE
from attune.values import Provenance

# What nobody tuned runs, too.
ANY_ANSWER = (*ACCEPTABLE, Provenance.HEURISTIC)


def arguments(description: str | None, *, limit: float) -> argparse.ArgumentParser:
    """The command line that the measurements share."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", help="host:port, unix:/path or a name; default $ATTUNE_SERVER, or this host's")
    parser.add_argument("--device", default="cuda:0", help="the service's name for this host's GPU")
    parser.add_argument("--out", type=pathlib.Path, help="the report's file; default: standard output, at the end")
    parser.add_argument("--limit", type=float, default=limit, metavar="S", help="begin nothing after so many seconds")
    return parser


class Report:
    def __init__(self, given: argparse.Namespace) -> None:
        self._start = time.monotonic()
        self._limit = given.limit
        self._out = given.out
        self.found: dict[str, Any] = {
            "command": " ".join([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]]),
            "device": torch.cuda.get_device_name(),
            "python": platform.python_version(),
            "torch": torch.__version__,
        }

    def left(self) -> float:
        """Seconds."""
        return self._start + self._limit - time.monotonic()

    def add(self, name: str, found: Any) -> None:
        """`found`, under `name`, and the file written anew."""
        self.found[name] = found
        self.found["seconds"] = round(time.monotonic() - self._start, 1)
        if self._out is not None:
            self._out.parent.mkdir(parents=True, exist_ok=True)
            self._out.write_text(self._text() + "\n")

    def end(self) -> None:
        if self._out is None:
            print(self._text())

    def _text(self) -> str:
        return json.dumps(self.found, indent=2)


def say(text: str) -> None:
    """To whoever waits."""
    print(text, file=sys.stderr, flush=True)
