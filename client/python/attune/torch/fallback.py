"""Where SDPA, or unfused attention in torch, computes instead: why, counted and said once a reason."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

# What attention falls back to: SDPA as it was before anything replaced it.
from torch.nn.functional import scaled_dot_product_attention as sdpa

from attune.background.reason import Reason, Unsuitable

__all__ = ["AttuneWarning", "Reason", "Stats", "Unsuitable", "blocks", "by_torch", "current_stats", "sdpa", "warn_once"]


class AttuneWarning(UserWarning):
    """SDPA, or unfused attention in torch, did what attune was asked to. Given once a function, reason and process
    (attune.configure starts anew)."""


@dataclass(slots=True, eq=False)
class Stats:
    """What happened to the calls."""

    launched: int = 0
    fallbacks: Counter[str] = field(default_factory=Counter)  # by the reason's value
    recorder: Any = field(default=None, repr=False)  # attune.coverage's, which calls are given to instead

    @property
    def fell_back(self) -> int:
        return self.fallbacks.total()


class _Blocks(threading.local):
    """Of replace_sdpa and count_calls, those that the calling thread is in, the innermost last."""

    backends: ClassVar[int] = 0  # of torch's that are attune (flash_backend), in all threads

    def __init__(self) -> None:
        self.stats: list[Stats] = []
        self.replacing: list[Stats] = []  # of those that replace SDPA
        self.by_torch = False  # SDPA computes a call that attune was asked for


blocks = _Blocks()


def current_stats() -> Stats | None:
    """Of the innermost block that the calling thread is in."""
    stats = blocks.stats
    return stats[-1] if stats else None


def by_torch(*args: Any, through: Callable[..., Any] | None = None, **options: Any) -> Any:
    """SDPA, or `through`, which calls it, for a call that attune was asked for. Where a TorchFunctionMode is active, as
    after torch.set_default_device, torch calls what stands in SDPA's place, as `through` may, which then leaves it to
    SDPA, as attune's flash backend leaves it to the one before."""
    compute = through or sdpa
    if not blocks.stats and not blocks.backends:  # where they do so anyway
        return compute(*args, **options)
    blocks.by_torch = True
    try:
        return compute(*args, **options)
    finally:
        blocks.by_torch = False


_SILENT = (Reason.PENDING, Reason.CONTEST)

_warned: set[tuple[str, Reason]] = set()
_lock = threading.Lock()


def warn_once(
    unsuitable: Unsuitable,
    what: str = "attune.attention",
    otherwise: str = "torch's SDPA",
    frames: int = 3,
) -> None:
    """`what` was called, `frames` calls from here, and `otherwise` computes. Nothing is said of what passes."""
    if unsuitable.reason in _SILENT or (what, unsuitable.reason) in _warned:
        return
    with _lock:
        if (what, unsuitable.reason) in _warned:
            return
        _warned.add((what, unsuitable.reason))
    warnings.warn(
        f"{what} runs {otherwise} ({unsuitable.reason.value}): {unsuitable.detail}",
        AttuneWarning,
        stacklevel=1 + frames,
    )


def renew_lock() -> None:
    """In the child of a fork: another thread of the parent may have held it."""
    global _lock
    _lock = threading.Lock()


def warn_again() -> None:
    """Forgets which reasons were given."""
    with _lock:
        _warned.clear()
