"""Contests between kernels and torch's SDPA, as it is set up."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

import torch

from attune.background.entry import Entry
from attune.torch.fallback import Stats

T = TypeVar("T")

_BACKENDS = {0: "math", 1: "flash", 2: "efficient", 3: "cudnn"}  # by torch._C._SDPBackend
_ENABLED = {
    "math": torch.backends.cuda.math_sdp_enabled,
    "flash": torch.backends.cuda.flash_sdp_enabled,
    "efficient": torch.backends.cuda.mem_efficient_sdp_enabled,
    "cudnn": torch.backends.cuda.cudnn_sdp_enabled,
}
# What makes FlashAttention 3 or 4 the flash backend; earlier versions of torch have none of it.
_VERSIONS = {
    name: getattr(torch._C, f"_get_{name}_sdp_enabled")
    for name in ("fa3", "fa4")
    if hasattr(torch._C, f"_get_{name}_sdp_enabled")
}


def _priorities() -> tuple[str, ...]:
    order = getattr(torch._C, "_get_sdp_priority_order", lambda: list(_BACKENDS))()
    return tuple(_BACKENDS[int(backend)] for backend in order if int(backend) in _BACKENDS)


# As they are unless somebody has set them. torch itself puts cuDNN first in the first call on a GPU for which it
# prefers it.
_INITIAL = _priorities()
_USUAL = (_INITIAL, ("cudnn", *(name for name in _INITIAL if name != "cudnn")))


def rival() -> str:
    """The contender's name of SDPA with the backends that are enabled now, first those that it prefers."""
    enabled = [name for name in _priorities() if _ENABLED[name]()]
    return _name((*enabled, *(name for name, is_enabled in _VERSIONS.items() if is_enabled())))


@functools.cache
def _name(backends: tuple[str, ...]) -> str:
    return f"torch-sdpa {torch.__version__}" + ("" if backends in _USUAL else f" ({', '.join(backends)})")


def take_turn(
    stats: Stats | None, entry: Entry, stream: int, ours: Callable[[Callable[..., None]], T], theirs: Callable[[], T]
) -> T:
    """A call whose kernel is being timed: `ours` of its launch, or `theirs`. Raises Unsuitable where it takes no part,
    and is to be computed without the kernel."""
    kernel, contest = entry.kernel, entry.contest
    if kernel is None or contest is None:  # decided meanwhile, or refused
        raise entry.unsuitable.again()
    with contest.turn(stream) as turn:
        if turn.ours:
            return ours(kernel.launch)
        if turn.number < 0:
            raise turn.unsuitable.again()
        result = theirs()
    if stats is not None:
        stats.fallbacks[turn.unsuitable.reason.value] += 1
    return result
