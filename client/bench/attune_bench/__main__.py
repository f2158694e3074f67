"""attune-bench: docs/bench.md."""

from __future__ import annotations

import signal
import sys

from attune.errors import AttuneError

from attune_bench.comparison import compare, comparison_text
from attune_bench.documents import write_documents
from attune_bench.error import BenchError
from attune_bench.jsonl import read_run
from attune_bench.options import parse
from attune_bench.run import bench


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
        print(f"attune-bench: {error}", file=sys.stderr)
        return 1


def run() -> None:
    """The command attune-bench."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # a daemon that was started ends, too
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
