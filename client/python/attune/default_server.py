"""Where the server is when nobody says. `attune`, the command, has the same rule (tests/golden/default_server.json)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping


def may_connect(path: str) -> bool:
    """Whether there is a socket at `path` that this user may connect to."""
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode) and os.access(path, os.W_OK)
    except OSError:
        return False


def default_server(environ: Mapping[str, str], connects: Callable[[str], bool] = may_connect) -> str:
    """$ATTUNE_SERVER; else the Unix socket of the user's own daemon, or of the host's, where there is one; else
    localhost:7411.
    """
    if server := environ.get("ATTUNE_SERVER"):
        return server
    runtime = environ.get("XDG_RUNTIME_DIR")
    for directory in [*([f"{runtime}/attune"] if runtime else []), "/run/attune"]:
        if connects(f"{directory}/attuned.sock"):
            return f"unix:{directory}/attuned.sock"
    return "localhost:7411"
