"""Sees to it that no daemon uses the device while the bench times on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attune
from attune.values import Device

from attune_bench.device_lock import device_lock, lock_file
from attune_bench.error import BenchError

LOCK_PATIENCE_S = 20  # a daemon that was stopped is gone sooner


@contextmanager
def no_daemon(lock_dir: Path, device: Device) -> Iterator[None]:
    """Holds the device's lock in the block. BenchError when another process on this host has it."""
    with device_lock(lock_file(lock_dir, device.uuid or device.id), LOCK_PATIENCE_S):
        yield


@contextmanager
def idle_daemon(server: str | None) -> Iterator[None]:
    """For a daemon that goes on running, whose worker keeps the lock: that it has no work, before and during the block.

    Raises BenchError naming the operations; after the block, which is done by then, those that began inside it.
    """
    with attune.Client(server) as client:
        active = [operation.title or operation.name for operation in client.operations(active_only=True)]
        if active:
            raise BenchError(f"the daemon is at work, and would disturb what is timed: {', '.join(active)}")
        before = {operation.name for operation in client.operations()}
        yield
        new = [op.title or op.name for op in client.operations() if op.name not in before]
        if new:
            raise BenchError(f"the daemon was at work while the bench timed; do not trust this run: {', '.join(new)}")
