"""torch's SDPA replaced inside a block."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import dataclass
from types import ModuleType, TracebackType

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from attune.torch.dispatch import attend
from attune.torch.fallback import Stats, blocks, current_stats, sdpa


class replace_sdpa:
    """Inside the block, and in the thread that entered it, scaled_dot_product_attention is attune.attention.

    Found are torch.nn.functional's function, what modules took from there (`from torch.nn.functional import
    scaled_dot_product_attention`), and with them nn.MultiheadAttention and the "sdpa" attention of transformers and
    diffusers; what a module other than __main__ takes once it is loaded, after the next import. Other threads call SDPA
    as before, but for compiled code: what is traced while any thread is in a block has attune's operator, whoever runs
    it. Blocks may be nested; an exception ends them as a return does, and so does another thread that leaves them.
    Counted, in the innermost block, are these calls and those of attune's own functions; of compiled code its
    operators, when they run.

        with attune.replace_sdpa() as replaced:
            model(tokens)
        replaced.stats.launched, replaced.stats.fallbacks
    """

    def __init__(self) -> None:
        self.stats = Stats()
        self._entered = _Entered(self.stats)

    def __enter__(self) -> replace_sdpa:
        _patches.acquire()
        self._entered.add(blocks.stats, blocks.replacing)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._entered.remove(blocks.stats)
        _patches.release()


class count_calls:
    """Counts the calls of attune's own functions that the thread makes inside the block, and replaces nothing: for
    models that call attune, as those of attune.transformers. Blocks may be nested, with those of replace_sdpa too: the
    innermost counts. Of compiled code the operators count when they run.

        with attune.count_calls() as counted:
            model.generate(tokens)
        counted.stats.launched, counted.stats.fallbacks
    """

    def __init__(self) -> None:
        self.stats = Stats()
        self._entered = _Entered(self.stats)

    def __enter__(self) -> count_calls:
        self._entered.add(blocks.stats)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._entered.remove(blocks.stats)


@dataclass(slots=True, eq=False)
class _Place:
    """Of a thread, the lists that have a block's counts while it is in the block; `blocks.stats` is the first."""

    lists: tuple[list[Stats], ...]


class _Entered:
    """The threads that are in a block. One may leave it for another that entered it, as where a server runs the two
    halves of a generator in a pool's threads: the one that entered is out of it then."""

    def __init__(self, stats: Stats) -> None:
        self._stats = stats
        self._places: list[_Place] = []  # the last entered last; append and remove are atomic

    def add(self, *lists: list[Stats]) -> None:
        for entered in lists:
            entered.append(self._stats)
        self._places.append(_Place(lists))

    def remove(self, own: list[Stats]) -> None:
        """For the thread whose `blocks.stats` is `own`, if it entered; else for the last that did."""
        places = self._places[::-1]
        place = next((place for place in places if place.lists[0] is own), places[0])
        self._places.remove(place)
        for entered in place.lists:
            entered.remove(self._stats)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """What stands in SDPA's place: attune.attention inside a block of this thread, SDPA itself elsewhere."""
    if is_dynamo_compiling():
        inside = _patches.active
        stats = None
    else:
        stats = current_stats()
        inside = bool(blocks.replacing) and not blocks.by_torch
    if not inside:
        return sdpa(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    return attend(stats, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)


class _Patches:
    """The names that mean SDPA, changed while at least one block is entered. Modules are searched for them again only
    after others were imported: that takes milliseconds. A notebook's cells bind names in __main__, which is always
    searched."""

    def __init__(self) -> None:
        self.active = False  # compiled code is guarded by it, and by nothing that a further block changes
        self._count = 0
        self._lock = threading.Lock()
        self._names: list[tuple[ModuleType, str]] = []
        self._searched: tuple[int, object] = (0, None)  # how many modules there were, and the last of them

    def acquire(self) -> None:
        with self._lock:
            self._count += 1
            if self._count > 1:
                return
            if self._searched != (len(sys.modules), next(reversed(sys.modules.values()))):
                self._search()
            self._names += [found for found in _names_in(sys.modules.get("__main__")) if found not in self._names]
            for module, name in self._names:
                if getattr(module, name, None) is sdpa:
                    setattr(module, name, scaled_dot_product_attention)
            self.active = True

    def release(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count > 0:
                return
            for module, name in self._names:
                if getattr(module, name, None) is scaled_dot_product_attention:  # others may have put theirs there
                    setattr(module, name, sdpa)
            self.active = False

    def renew_lock(self) -> None:
        """In the child of a fork: another thread of the parent may have held it."""
        self._lock = threading.Lock()

    def _search(self) -> None:
        modules = list(sys.modules.values())
        self._names = [found for module in modules for found in _names_in(module)]
        self._searched = (len(modules), modules[-1])


def _names_in(module: object) -> list[tuple[ModuleType, str]]:
    if not isinstance(module, ModuleType) or not _may_change(module):
        return []
    values = list(vars(module).items())
    return [(module, name) for name, value in values if value is sdpa or value is scaled_dot_product_attention]


def _may_change(module: ModuleType) -> bool:
    """All but attune's own modules, which mean the original, and torch's inner ones, which look it up by identity."""
    if module in (torch.nn.functional, torch._C._nn):
        return True
    return not module.__name__.startswith(("attune.", "torch."))


_patches = _Patches()
os.register_at_fork(after_in_child=_patches.renew_lock)
