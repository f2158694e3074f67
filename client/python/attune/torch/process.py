"""What this process knows for attention, from its first call to its exit, and in the children that it forks."""

from __future__ import annotations

import atexit
import math
import os
import threading
from collections.abc import Callable
from typing import TypeVar

import torch

from attune.background import settings
from attune.background.entry import Entry, State
from attune.background.kernel_cache import KernelCache
from attune.background.reason import Unsuitable
from attune.background.service import Gpu
from attune.background.thread import Background
from attune.cuda.device import use_memory
from attune.torch import contest, fallback, memory

_MOST_CALLS = 16384
_EXIT_S = 2.0
T = TypeVar("T")

# By everything about a call that it depends on. Those in `placed` need more than the launch: their tensors have
# strides of their own, or are padded, or another scale is asked for.
calls: dict[tuple, Entry] = {}
placed: dict[tuple, Entry] = {}
# By keys of direct.py, what is known, its launch at the time, that launch for the call's strides and scale (None: it is
# left to torch), and a tensor without memory like the log-sum-exp, if there is one.
Launch = Callable[..., None]
direct: dict[tuple, tuple[Entry, Launch | None, Launch | None, torch.Tensor | None]] = {}

# By dtypes, layout and device of inputs: why no kernel computes any such, where that is the dtypes alone.
other_dtypes: dict[tuple, Unsuitable] = {}
_remembered = calls, placed, direct, other_dtypes

_kernel_cache: KernelCache | None = None
_lock = threading.Lock()


def kernel_cache() -> KernelCache:
    """The one in use."""
    global _kernel_cache
    found = _kernel_cache
    if found is not None:
        return found
    settings.settings()  # the first time it configures attune, which takes the lock
    with _lock:
        if _kernel_cache is None:
            _kernel_cache = KernelCache(settings.settings(), gpu_of, wake, contest.rival)
        return _kernel_cache


def remember(kernels: KernelCache, known: dict[tuple, T], signature: tuple | None, entry: T) -> None:
    """`entry` in `known`, one of those above, unless attune was configured anew meanwhile."""
    with _lock:
        if signature is None or kernels is not _kernel_cache:
            return
        if len(known) >= _MOST_CALLS:
            for old in list(known)[: _MOST_CALLS // 4]:
                del known[old]
        known[signature] = entry


def refresh() -> None:
    """Forgets what was answered: the next call of each shape has the service asked again."""
    global _kernel_cache
    with _lock:
        before, _kernel_cache = _kernel_cache, None
        for known in _remembered:
            known.clear()
    if before is not None:
        before.close()


def state() -> State:
    """What is known of the shapes that were asked for since the last `attune.configure` or `attune.refresh`."""
    return kernel_cache().state()


def gpu_of(index: int) -> Gpu:
    here = torch.cuda.get_device_properties(index)
    return Gpu(here.name, str(getattr(here, "uuid", "")).removeprefix("GPU-"))


def wake() -> bool:
    """There is something to ask; whether there is a thread to do it."""
    return _background.wake()


def _may_start() -> bool:
    """Not while the calling thread's stream is recorded into a CUDA graph."""
    return not (torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())


def _work() -> float:
    kernels = _kernel_cache
    return math.inf if kernels is None else kernels.work()


_background = Background(_work, _may_start)
_of_parents: list[object] = []  # what a forked child has of its parent's: to be left alone, not even ended


def _configured() -> None:
    fallback.warn_again()
    refresh()
    if settings.settings().wait > 0:  # a call that captures a CUDA graph may wait, but starts no thread
        _background.start()


def _in_forked_child() -> None:
    """Starts anew: the parent's thread is not here, and its other threads may have held any lock."""
    global _kernel_cache, _background, _lock
    _of_parents.append((_kernel_cache, _background))
    _kernel_cache, _background, _lock = None, Background(_work, _may_start), threading.Lock()
    for known in _remembered:
        known.clear()
    fallback.renew_lock()
    settings.renew_locks()


def _at_exit() -> None:
    """Ends the thread before the interpreter does, whatever it is waiting for."""
    kernels = _kernel_cache
    if kernels is not None:
        kernels.close()
    _background.stop(_EXIT_S)


settings.on_change(_configured)
use_memory(memory.allocate)
os.register_at_fork(after_in_child=_in_forked_child)
atexit.register(_at_exit)
