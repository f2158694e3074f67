"""What the kernels of one GPU share: loaded code and scratch memory."""

from __future__ import annotations

import functools
import threading

from attune.cuda.driver import Driver, driver
from attune.cuda.module import Modules
from attune.cuda.scratch import Scratch


class Device:
    """A GPU of this process. `lock` is held while memory is taken from `scratch`."""

    def __init__(self, index: int, driver: Driver, modules: Modules) -> None:
        self.index = index
        self.driver = driver
        self.modules = modules
        self.scratch = Scratch(driver)
        self.lock = threading.Lock()


@functools.cache
def modules() -> Modules:
    """The artifacts that this process has loaded."""
    return Modules(driver())


@functools.cache
def device(index: int) -> Device:
    """GPU `index` of this process."""
    return Device(index, driver(), modules())
