"""python -m attune.bench: docs/bench.md."""

from __future__ import annotations

import signal
import sys

from attune.bench.comparison import compare, comparison_text
from attune.bench.documents import write_documents
from attune.bench.error import BenchError
from attune.bench.jsonl import read_run
from attune.bench.options import parse
from attune.bench.run import bench
from attune.errors import AttuneError


def main(arguments: list[str]) -> int:
    """Runs what the command line asks for; its exit code. What goes wrong is said in one line."""
    options = parse(arguments)
    try:
        if options.compare:
            changes = compare(*(read_run(path) for path in options.compare))
            print(comparison_text(changes))
            return 0 if all(change.agrees for change in changes) else 1
        if options.report:
            for written in write_documents(read_run(options.report), options.report):
                print(written)
            return 0
        return bench(options)
    except (AttuneError, BenchError, OSError) as error:
        print(f"attune.bench: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # a daemon that was started ends, too
    sys.exit(main(sys.argv[1:]))
