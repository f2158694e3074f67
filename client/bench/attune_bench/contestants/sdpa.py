"""PyTorch's scaled_dot_product_attention: each backend by itself, and the one that PyTorch picks."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext

import torch
from attune.problem import Problem
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from attune_bench.contestants.contestant import NotApplicable, Ready, Skipped
from attune_bench.inputs import Inputs
from attune_bench.reasons import sdpa_reason

BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}

# The math backend keeps the logits and what the softmax makes of them, in fp32: about this many bytes a logit.
_MATH_BYTES_A_LOGIT = 20
_MATH_MOST_BYTES = 32 << 30


def _refuse_what_sdpa_lacks(problem: Problem) -> None:
    if problem.softcap:
        raise NotApplicable("scaled_dot_product_attention has no softcap")
    if problem.mask not in ("none", "causal"):
        raise NotApplicable(f"scaled_dot_product_attention has no mask '{problem.mask}' but as a bias")
    if problem.lse:
        raise NotApplicable("scaled_dot_product_attention returns no log-sum-exp")


class Sdpa:
    """One backend, or (None) whichever PyTorch picks."""

    def __init__(self, name: str, backend: SDPBackend | None) -> None:
        self.name = name
        self._backend = backend

    def _selected(self) -> AbstractContextManager:
        return nullcontext() if self._backend is None else sdpa_kernel(self._backend)

    def prepare(self, problem: Problem, inputs: Inputs) -> Ready:
        """As Contestant.prepare. K and V are expanded in each call where the backend has no grouped heads."""
        _refuse_what_sdpa_lacks(problem)
        if self._backend is SDPBackend.MATH:
            _refuse_what_math_is_too_big_for(problem)
        causal = problem.mask == "causal"
        group = problem.heads_q // problem.heads_kv

        def call(some: Inputs) -> torch.Tensor:
            return scaled_dot_product_attention(some.q, some.k, some.v, is_causal=causal, enable_gqa=group > 1)

        def call_expanded(some: Inputs) -> torch.Tensor:
            k, v = some.k.repeat_interleave(group, 1), some.v.repeat_interleave(group, 1)
            return scaled_dot_product_attention(some.q, k, v, is_causal=causal)

        refused = self._refusal(call, inputs)
        if not refused:
            return Ready(call, self._selected)
        if group > 1 and not self._refusal(call_expanded, inputs):
            note = f"K and V expanded to {problem.heads_q} heads in each call: {refused}"
            return Ready(call_expanded, self._selected, note)
        raise NotApplicable(refused)

    def _refusal(self, call, inputs: Inputs) -> str:
        """Empty when a call goes through; otherwise PyTorch's reason."""
        with warnings.catch_warnings(record=True) as caught, self._selected():
            warnings.simplefilter("always")
            try:
                call(inputs)
                torch.cuda.synchronize()
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                return sdpa_reason(self.name, [str(warning.message) for warning in caught], str(error))
        return ""


def _refuse_what_math_is_too_big_for(problem: Problem) -> None:
    needed = _MATH_BYTES_A_LOGIT * problem.batch * problem.heads_q * problem.seq_q * problem.seq_kv
    if needed > _MATH_MOST_BYTES:
        raise Skipped(f"would need about {needed / 2**30:.0f} GiB; it is given {_MATH_MOST_BYTES / 2**30:.0f}")
