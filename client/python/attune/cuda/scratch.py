"""Scratch buffers: who may use which, and for how long.

A stream runs its launches in order, so that all kernels launched on it share one arena, if no thread's launches come
between another's: the arena's lock sees to that. Other streams have arenas of their own, kept as long as the process.

A captured graph may be replayed on any stream, at any time, so that it owns an arena for each stream that was
captured, until the graph and every executable made from it are destroyed. The driver says so by posting a semaphore:
plain C, so that a graph may outlive the interpreter. The memory then serves the next capture.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from attune.cuda.driver import Capture, Driver
from attune.values import ScratchBuffer

_ALIGNMENT = 256
_SMALLEST_CHUNK = 1 << 16
_MOST_CAPTURES = 64  # that are remembered at once
_SEMAPHORE_BYTES = 64  # sem_t has 32 with glibc


@dataclass(slots=True)
class _Chunk:
    address: int = 0
    bytes: int = 0
    semaphore: int = 0  # of a graph's chunk: posted when the graph is gone


class Arena:
    """Memory in the order of one stream. `lock` is held while a recipe's launches are enqueued."""

    def __init__(self, allocate: Callable[[int, bool], _Chunk]) -> None:
        """`allocate(size, zeroed)` gives at least `size` bytes."""
        self.lock = threading.Lock()
        self._allocate = allocate
        # A kernel that needs a buffer zero leaves it zero, so that the second chunk is zero between any two recipes.
        self._chunks = {False: _Chunk(), True: _Chunk()}

    def addresses(self, buffers: Sequence[ScratchBuffer]) -> list[int]:
        """Of a recipe's buffers, 0 for one of 0 bytes. They stay valid: a chunk that is outgrown is not freed."""
        offsets = {False: 0, True: 0}
        places: list[int] = []
        for buffer in buffers:
            places.append(offsets[buffer.zero_before_first_run])
            offsets[buffer.zero_before_first_run] += -(-buffer.bytes // _ALIGNMENT) * _ALIGNMENT
        for zeroed, size in offsets.items():
            if size > self._chunks[zeroed].bytes:
                self._chunks[zeroed] = self._allocate(size, zeroed)
        return [
            self._chunks[buffer.zero_before_first_run].address + place if buffer.bytes else 0
            for buffer, place in zip(buffers, places, strict=True)
        ]

    def zeroed(self) -> tuple[int, int]:
        """Address and bytes of the memory that the buffers last given out share which must be zero."""
        return self._chunks[True].address, self._chunks[True].bytes


class Scratch:
    """The arenas of one device. The caller serializes calls and makes the device's context current."""

    def __init__(self, driver: Driver, allocate: Callable[[int, int], int]) -> None:
        """`allocate(size, stream)`: an address, for work in the order of the stream."""
        self._driver = driver
        self._allocate = allocate
        self._side_stream: int | None = None
        self._of_streams: dict[Hashable, Arena] = {}
        self._of_capture: dict[tuple[int, int], Arena] = {}  # by the capture's id and the stream
        self._of_graphs: list[_Chunk] = []

    def of_stream(self, key: Hashable, stream: int) -> Arena:
        """The arena of the stream that `key` stands for; its handle is `stream`."""

        def allocate(size: int, zeroed: bool) -> _Chunk:
            chunk = self._new_chunk(size, stream)
            if zeroed:
                self._driver.zero(chunk.address, chunk.bytes, stream)
            return chunk

        if key not in self._of_streams:
            self._of_streams[key] = Arena(allocate)
        return self._of_streams[key]

    def of_capture(self, capture: Capture, stream: int) -> Arena:
        """The arena of a stream that is being captured."""
        key = capture.id, stream
        if key not in self._of_capture:
            if len(self._of_capture) >= _MOST_CAPTURES:  # of captures long over; their graphs keep the memory
                self._of_capture.clear()
            self._of_capture[key] = Arena(functools.partial(self._for_capture, capture))
        return self._of_capture[key]

    def _for_capture(self, capture: Capture, size: int, zeroed: bool) -> _Chunk:
        side = self._side()
        chunk = self._unused(size) or self._new_chunk(size, side)
        if zeroed:  # now, and not by the graph, which would do it at each replay
            self._driver.zero_now(chunk.address, chunk.bytes, side)
        if not chunk.semaphore:
            chunk.semaphore = _new_semaphore()
        post = ctypes.cast(_libc().sem_post, ctypes.c_void_p).value
        self._driver.when_destroyed(capture.graph, post, chunk.semaphore)
        self._of_graphs.append(chunk)
        return chunk

    def _unused(self, size: int) -> _Chunk | None:
        """A chunk of a graph that is gone."""
        for chunk in self._of_graphs:
            if chunk.bytes >= size and _libc().sem_trywait(ctypes.c_void_p(chunk.semaphore)) == 0:
                self._of_graphs.remove(chunk)
                return chunk
        return None

    def _new_chunk(self, size: int, stream: int) -> _Chunk:
        # Powers of two: all that a stream has outgrown is together smaller than what it has.
        rounded = max(_SMALLEST_CHUNK, 1 << (size - 1).bit_length())
        return _Chunk(self._allocate(rounded, stream), rounded)

    def _side(self) -> int:
        """A stream that no work but this file's is given to: a graph may be replayed on any stream, and memory of this
        one was nobody's before. The allocator of a graph that is captured has no part in it."""
        if self._side_stream is None:
            self._side_stream = self._driver.new_stream()
        return self._side_stream


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.calloc.restype = ctypes.c_void_p
    libc.calloc.argtypes = (ctypes.c_size_t, ctypes.c_size_t)
    return libc


def _new_semaphore() -> int:
    """Address of a semaphore in memory that is not Python's."""
    semaphore = _libc().calloc(1, _SEMAPHORE_BYTES)
    _libc().sem_init(ctypes.c_void_p(semaphore), 0, 0)
    return semaphore
