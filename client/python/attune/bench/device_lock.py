"""The lock under which daemons use a device, held by the bench while it times: no worker then shares the device.

It is flock on `<lock_dir>/<uuid>.lock`, a file that holds its holder's process id: as server/workers/device_lock.h.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attune.bench.error import BenchError


def lock_file(lock_dir: Path, uuid: str) -> Path:
    """Where the lock of the device with this UUID (or id, where it has none) is."""
    return lock_dir / f"{re.sub('[^0-9A-Za-z-]', '_', uuid)}.lock"


@contextmanager
def device_lock(path: Path, patience_s: float) -> Iterator[None]:
    """Holds the lock in the block; waits up to `patience_s` seconds for an idle daemon to give the device back.

    Raises BenchError naming the process that still holds it then.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        end = time.monotonic() + patience_s
        while not _taken(descriptor):
            if time.monotonic() >= end:
                holder = os.pread(descriptor, 32, 0).decode(errors="replace") or "unknown"
                raise BenchError(f"the device is in use by process {holder}, which holds {path}; waited {patience_s} s")
            time.sleep(0.1)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
