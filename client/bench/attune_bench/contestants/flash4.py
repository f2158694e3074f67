"""FlashAttention 4, compiled for a problem when it is first called."""

from __future__ import annotations

import torch
from attune.problem import Problem

from attune_bench.contestants.contestant import NotApplicable, Ready
from attune_bench.flash4 import NOT_INSTALLED, call_options, installed_version, refusal
from attune_bench.inputs import Inputs
from attune_bench.records import FLASH4


class Flash4:
    """With the splits and the tiles that the library chooses by itself."""

    name = FLASH4

    def prepare(self, problem: Problem, inputs: Inputs) -> Ready:
        """As Contestant.prepare. Heads and rows change places in views: it takes [batch, seq, heads, head_dim]."""
        if installed_version() is None:
            raise NotApplicable(NOT_INSTALLED)
        if reason := refusal(problem):
            raise NotApplicable(reason)
        from flash_attn.cute import flash_attn_func

        options = call_options(problem)

        def call(some: Inputs) -> torch.Tensor:
            q, k, v = (tensor.transpose(1, 2) for tensor in (some.q, some.k, some.v))
            o, _ = flash_attn_func(q, k, v, **options)
            return o.transpose(1, 2)

        call(inputs)
        return Ready(call)
