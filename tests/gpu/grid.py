"""The problems that `attune-bench` runs when none are given, for scripts that do without the client."""

import pathlib

GRID = pathlib.Path(__file__).resolve().parents[2] / "client/bench/attune_bench/grid.txt"


def bench_grid():
    """Canonical texts, in the file's order."""
    lines = (line.partition("#")[0].strip() for line in GRID.read_text().splitlines())
    return [line for line in lines if line]
