"""The lock under which daemons use a device, held by the bench while it times: no worker then shares the device.

It is a POSIX record lock on `<lock_dir>/<uuid>.lock`: as server/worker/device_lock.h, which says why.
Where it is: tests/golden/device_lock.json.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attune_bench.error import BenchError

# struct flock of 64-bit Linux: type, whence, start, length, pid.
_FLOCK = struct.Struct("hhqqi4x")


def default_lock_dir(data: Path) -> Path:
    """Where a daemon on the data directory `data` keeps its locks unless told: as server/daemon/settings.h."""
    if os.geteuid() == 0:
        return Path("/run/attune/locks")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "attune/locks" if runtime else data / "locks"


def lock_file(lock_dir: Path, uuid: str) -> Path:
    """Where the lock of the device with this UUID (or id, where it has none) is."""
    name = re.sub(b"[^0-9A-Za-z-]", b"_", uuid.encode()).decode()
    return lock_dir / f"{name}.lock"


@contextmanager
def device_lock(path: Path, patience_s: float) -> Iterator[None]:
    """Holds the lock in the block; waits up to `patience_s` seconds for an idle daemon to give the device back.

    Raises BenchError naming the process that still holds it then.
    """
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o660)
    try:
        end = time.monotonic() + patience_s
        while not _taken(descriptor):
            if time.monotonic() >= end:
                raise BenchError(
                    f"the device is in use by process {_holder(descriptor)}, which holds {path}; waited {patience_s} s"
                )
            time.sleep(0.1)
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _holder(descriptor: int) -> str:
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    pid = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))[4]
    return str(pid) if pid > 0 else "unknown"
