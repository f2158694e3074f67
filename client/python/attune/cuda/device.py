"""What the kernels of one GPU share: loaded code and scratch memory."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

from attune.cuda.driver import Driver, driver
from attune.cuda.module import Modules
from attune.cuda.scratch import Scratch

# (device, size, stream) -> address of memory for work in the order of the stream, aligned to 256; raises CudaError.
Memory = Callable[[int, int, int], int]


class Device:
    """A GPU of this process. `lock` is held while memory is taken from `scratch`."""

    def __init__(self, index: int, driver: Driver, modules: Modules, memory: Memory | None = None) -> None:
        """`memory` is where scratch comes from; None: from the driver."""
        self.index = index
        self.driver = driver
        self.modules = modules
        self._memory = memory
        self.scratch = Scratch(driver, self._allocate)
        self.lock = threading.Lock()

    def _allocate(self, size: int, stream: int) -> int:
        return self.driver.allocate(size) if self._memory is None else self._memory(self.index, size, stream)


@functools.cache
def modules() -> Modules:
    """The artifacts that this process has loaded."""
    return Modules(driver())


@functools.cache
def device(index: int) -> Device:
    """GPU `index` of this process."""
    return Device(index, driver(), modules(), _allocate)


_memory: Memory | None = None


def use_memory(memory: Memory) -> None:
    """Has the scratch memory of this process's GPUs come from `memory` from now on."""
    global _memory
    _memory = memory


def _allocate(index: int, size: int, stream: int) -> int:
    return driver().allocate(size) if _memory is None else _memory(index, size, stream)
