"""Writes what people read of a run: the Markdown document and its pictures, beside the JSON lines."""

from __future__ import annotations

from pathlib import Path

from attune_bench.jsonl import Run
from attune_bench.plots import plot
from attune_bench.reference_times import read_reference
from attune_bench.report import report


def write_documents(run: Run, path: Path) -> list[Path]:
    """Beside `path`, the run's JSON lines, and named as it; returns what was written.

    Earlier times are taken from `reference-sdpa-<device>.csv` in the same directory, if it is there.
    """
    pictures = plot(run, path.with_suffix(""))
    reference = read_reference(path.parent / f"reference-sdpa-{run.header.slug}.csv")
    document = path.with_suffix(".md")
    document.write_text(report(run, pictures, reference))
    return [document, *(path.parent / name for name in pictures.values())]
