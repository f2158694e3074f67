"""attune as PyTorch's flash backend, where the installed version takes others than its own.

    torch.nn.attention.activate_flash_attention_impl("attune")  # importing attune.torch registers it

From then on whatever reaches aten::_scaled_dot_product_flash_attention on a GPU is looked up: all SDPA calls for which
torch chooses the flash backend, of any thread, from C++ and from compiled graphs too. What no kernel computes is
computed by the implementation that was there before, and so are all gradients: the operator's results, the log-sum-exp
among them, are those that its backward takes.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.attention
from torch import Tensor

from attune.errors import InvalidArgument
from attune.torch import direct
from attune.torch.dense_call import DenseCall
from attune.torch.dispatch import attend_call
from attune.torch.fallback import blocks, current_stats
from attune.torch.options import Options

NAME = "attune"
_OPERATOR = "_scaled_dot_product_flash_attention"
_KEY = "CUDA"

# Output, log-sum-exp, cum_seq_q and _k, max_q and _k, rng_state, unused, debug_attn_mask.
Results = tuple[Any, ...]


def register() -> None:
    """Makes "attune" one of torch.nn.attention.list_flash_attention_impls(). Nothing where torch has no such list, or
    does not hand out the implementation that another replaces."""
    add = getattr(torch.nn.attention, "register_flash_attention_impl", None)
    if add is not None and hasattr(torch.library, "get_kernel"):
        add(NAME, register_fn=_Backend)


class _Backend:
    """Active until `remove` is called, by torch."""

    def __init__(self) -> None:
        self._before = torch.library.get_kernel(f"aten::{_OPERATOR}", _KEY)
        self._library: torch.library.Library | None = torch.library.Library("aten", "IMPL", _KEY)
        self._library.impl(_OPERATOR, self._attend, _KEY, with_keyset=True, allow_override=True)
        type(blocks).backends += 1

    def remove(self) -> None:
        if self._library is not None:
            self._library = None
            type(blocks).backends -= 1

    def _attend(
        self,
        keys: torch._C.DispatchKeySet,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        return_debug_mask: bool = False,
        *,
        scale: float | None = None,
    ) -> Results:
        def before() -> Results:
            return self._before.call_boxed(
                keys, query, key, value, dropout_p, is_causal, return_debug_mask, scale=scale
            )

        # SDPA that attune itself asked for is not to ask attune. Of different lengths causal has meant both alignments.
        if blocks.by_torch or dropout_p or return_debug_mask or (is_causal and query.shape[2] != key.shape[2]):
            return before()
        with torch.no_grad():  # what requires grad is the dispatcher's matter
            computed = _computed(query, key, value, is_causal, scale, before)
        if len(computed) > 2:
            return computed
        seed = torch.empty(2, dtype=torch.uint64, device=query.device)
        offset = torch.empty((), dtype=torch.uint64, device=query.device)
        out, lse = computed
        if out.stride() != query.stride() and out.stride() != (like := torch.empty_like(query)).stride():
            out = like.copy_(out)  # compiled code was told so
        return out, lse, None, None, query.shape[2], key.shape[2], seed, offset, query.new_empty(0)


def _computed(query: Tensor, key: Tensor, value: Tensor, is_causal: bool, scale: float | None, before: Any) -> Results:
    """Output and log-sum-exp by a kernel, or all that `before` returns."""
    stats, causal = current_stats(), "top-left" if is_causal else None
    options = Options(causal, return_lse=True, scale=scale, enable_gqa=query.shape[1] != key.shape[1])
    given = (False, causal, None, 0.0, True, scale, options.enable_gqa)
    found, known = direct.dense(stats, query, key, value, None, given)
    if isinstance(known, tuple):
        return known
    call = FlashCall(query, key, value, options, before)
    try:
        result = attend_call(stats, call)
    except InvalidArgument:  # which torch says in its own words
        return before()
    if call.results is not None:
        return call.results
    direct.remember_call(found, given, call, query, result)
    return result


class FlashCall(DenseCall):
    """Without a kernel it is what `before` returns, and keeps it as `results`."""

    what = "torch's flash backend attune"
    otherwise = "the flash backend that it replaced"

    def __init__(self, query: Tensor, key: Tensor, value: Tensor, options: Options, before: Any) -> None:
        super().__init__(query, key, value, options)
        self._before = before
        self.results: Results | None = None

    def compute(self) -> tuple[Tensor, Tensor | None]:
        self.results = self._before()
        return self.results[0], self.results[1]
