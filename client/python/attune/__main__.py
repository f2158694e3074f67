"""`python -m attune --version`: the client's version, and that of the server it would ask."""

from __future__ import annotations

import argparse
import importlib.metadata
import sys

import attune


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m attune", description=attune.__doc__.splitlines()[0])
    parser.add_argument("--version", action="store_true", required=True, help="of the client and of the server")
    parser.add_argument("--server", help="host:port, unix:/path or a name; default: as attune.Client() chooses")
    arguments = parser.parse_args()
    print(f"attune-attention {importlib.metadata.version('attune-attention')}")
    try:
        with attune.Client(arguments.server, deadline=2.0) as client:
            print(f"attuned {client.host().server_version} at {client.server}")
    except attune.AttuneError as error:
        print(f"attuned: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
