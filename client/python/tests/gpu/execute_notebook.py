"""Executes a notebook in a fresh kernel and writes it with its outputs, up to the cell that failed if one did.

    python3 execute_notebook.py NOTEBOOK EXECUTED

Values shown as HTML are written without their repr, which is long and seen by nobody.
"""

from __future__ import annotations

import sys

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

SECONDS_A_CELL = 120


def drop_reprs(notebook: nbformat.NotebookNode) -> None:
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if "text/html" in output.get("data", ()):
                output.data.pop("text/plain", None)


def main(source: str, executed: str) -> int:
    notebook = nbformat.read(source, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    try:
        # Without the times of each cell, which would differ each time.
        NotebookClient(notebook, kernel_name="python3", timeout=SECONDS_A_CELL, record_timing=False).execute()
    except CellExecutionError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        drop_reprs(notebook)
        nbformat.write(notebook, executed)
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
