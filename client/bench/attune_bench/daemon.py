"""A daemon of the bench's own, for a host where none runs: started, used and stopped by one command."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from attune_bench.error import BenchError

START_S = 60
STOP_S = 30


@dataclass(frozen=True, slots=True)
class DaemonOptions:
    """How to start `attuned`, which has `attune-worker` beside it."""

    attuned: Path
    data: Path  # the directory of its database, kept
    lock_dir: Path
    libraries: str = ""  # its LD_LIBRARY_PATH; empty: the bench's own
    kernels: str = ""  # directories of kernel families, comma-separated; empty: the daemon's default


def daemon_command(options: DaemonOptions, address: str) -> list[str]:
    """The command line of `attuned`. It gives the device back as soon as it has nothing to do."""
    command = [
        str(options.attuned),
        f"--listen={address}",
        f"--data_dir={options.data}",
        f"--lock_dir={options.lock_dir}",
        "--idle_release=500ms",
    ]
    if options.kernels:
        command.append(f"--kernels_dir={options.kernels}")
    return command


@contextmanager
def running_daemon(options: DaemonOptions) -> Iterator[str]:
    """The address of a daemon that serves until the end of the block; its log is `attuned.log` in the data directory.

    Raises BenchError with the end of the log when it does not start.
    """
    options.data.mkdir(parents=True, exist_ok=True)
    log = options.data / "attuned.log"
    environment = dict(os.environ)
    if options.libraries:
        environment["LD_LIBRARY_PATH"] = options.libraries
    with tempfile.TemporaryDirectory(prefix="attune-bench-") as directory, log.open("w") as stderr:
        socket = Path(directory, "attuned.sock")
        address = f"unix:{socket}"
        process = subprocess.Popen(daemon_command(options, address), stderr=stderr, env=environment)
        try:
            end = time.monotonic() + START_S
            while not socket.exists():
                if process.poll() is not None or time.monotonic() > end:
                    raise BenchError(f"{options.attuned} did not start:\n{log.read_text()[-2000:]}")
                time.sleep(0.05)
            yield address
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
