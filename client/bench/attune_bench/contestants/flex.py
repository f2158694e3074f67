"""PyTorch's flex_attention, compiled for each problem's own shape."""

from __future__ import annotations

import torch
import torch._inductor.config as inductor
from attune.problem import Problem
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from attune_bench.contestants.contestant import NotApplicable, Ready
from attune_bench.inputs import Inputs


def block_mask(problem: Problem) -> BlockMask | None:
    """The blocks of logits that a mask leaves; None without a mask."""
    if problem.mask == "none":
        return None
    offset = 0 if problem.mask == "causal" else problem.seq_kv - problem.seq_q
    window = problem.window

    def causal(batch, head, query, key):
        return query + offset >= key

    def windowed(batch, head, query, key):
        return (query + offset >= key) & (query + offset - window < key)

    mask = windowed if problem.mask == "window" else causal
    return create_block_mask(mask, None, None, problem.seq_q, problem.seq_kv, device="cuda")


class Flex:
    """Compiled with static shapes, the fastest it offers without a search over its tiles."""

    name = "flex"

    def prepare(self, problem: Problem, inputs: Inputs) -> Ready:
        """As Contestant.prepare. Compiling takes seconds unless PyTorch's cache on disk has the code."""
        if problem.softcap:
            raise NotApplicable("the bench gives flex_attention no softcap")
        if problem.lse:
            raise NotApplicable("the bench asks flex_attention for no log-sum-exp")
        # The parallelism is flex_ahead's processes; workers of PyTorch's own would only disturb what is timed.
        inductor.compile_threads = 1
        # Without it the problems so far would count against the limit of compilations of one function, past which it
        # runs uncompiled, and each call would go through the guards of all of them.
        torch.compiler.reset()
        compiled = torch.compile(flex_attention, dynamic=False, fullgraph=True)
        mask = block_mask(problem)
        grouped = problem.heads_q != problem.heads_kv

        def call(some: Inputs) -> torch.Tensor:
            return compiled(some.q, some.k, some.v, block_mask=mask, enable_gqa=grouped)

        call(inputs)
        return Ready(call)
