"""Scratch buffers: who may use which, and for how long.

A stream runs its launches in order, so they share one set of buffers; other streams have sets of their own. A captured
graph may be replayed on any stream, at any time, so it owns a set for each stream that was captured, until the graph
and every executable made from it are destroyed. The driver says so by posting a semaphore: plain C, so that a graph
may outlive the interpreter. The set then serves the next capture.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from dataclasses import dataclass

from attune.cuda.driver import Capture, Driver
from attune.values import ScratchBuffer

_ALIGNMENT = 256
_SEMAPHORE_BYTES = 64  # sem_t has 32 with glibc


@dataclass(slots=True)
class _Captured:
    address: int
    semaphore: int  # posted when no graph uses the set


class Scratch:
    """The scratch of one recipe on one device. The caller serializes calls and makes the device's context current."""

    def __init__(self, driver: Driver, buffers: Sequence[ScratchBuffer]) -> None:
        self._driver = driver
        self._buffers = tuple(buffers)
        self._offsets: list[int] = []
        self.bytes = 0  # of a set
        for buffer in buffers:
            self._offsets.append(self.bytes)
            self.bytes += -(-buffer.bytes // _ALIGNMENT) * _ALIGNMENT
        self._of_streams: list[int] = []
        self._of_graphs: list[_Captured] = []

    def for_stream(self, stream: int) -> list[int]:
        """Addresses of a new set for `stream`, zeroed in its order where the recipe asks for that."""
        if self.bytes == 0:
            return self._addresses(0)
        start = self._driver.allocate(self.bytes)
        self._of_streams.append(start)
        for address, buffer in self._zeroed(start):
            self._driver.zero(address, buffer.bytes, stream)
        return self._addresses(start)

    def for_capture(self, capture: Capture) -> list[int]:
        """Addresses of a set that belongs to the graph being captured. Zeroed before the capture goes on where the
        recipe asks for that, and not by the graph: the kernels leave it zero."""
        if self.bytes == 0:
            return self._addresses(0)
        captured = self._unused() or _Captured(self._driver.allocate(self.bytes), _new_semaphore())
        for address, buffer in self._zeroed(captured.address):
            self._driver.zero_now(address, buffer.bytes)
        post = ctypes.cast(_libc().sem_post, ctypes.c_void_p).value
        self._driver.when_destroyed(capture.graph, post, captured.semaphore)
        self._of_graphs.append(captured)
        return self._addresses(captured.address)

    def release(self) -> None:
        """Frees the streams' sets, and those of graphs that are gone. A living graph keeps its own for good: nobody
        is left to wait for its end."""
        while (unused := self._unused()) is not None:
            self._of_streams.append(unused.address)
            _libc().free(ctypes.c_void_p(unused.semaphore))
        while self._of_streams:
            self._driver.free(self._of_streams.pop())

    def _addresses(self, start: int) -> list[int]:
        return [
            start + offset if buffer.bytes else 0
            for offset, buffer in zip(self._offsets, self._buffers, strict=True)
        ]

    def _zeroed(self, start: int) -> list[tuple[int, ScratchBuffer]]:
        pairs = zip(self._addresses(start), self._buffers, strict=True)
        return [(address, buffer) for address, buffer in pairs if buffer.bytes and buffer.zero_before_first_run]

    def _unused(self) -> _Captured | None:
        for captured in self._of_graphs:
            if _libc().sem_trywait(ctypes.c_void_p(captured.semaphore)) == 0:
                self._of_graphs.remove(captured)
                return captured
        return None


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.calloc.restype = ctypes.c_void_p
    libc.calloc.argtypes = (ctypes.c_size_t, ctypes.c_size_t)
    return libc


def _new_semaphore() -> int:
    """Address of a semaphore that is outside of Python's memory."""
    semaphore = _libc().calloc(1, _SEMAPHORE_BYTES)
    _libc().sem_init(ctypes.c_void_p(semaphore), 0, 0)
    return semaphore


