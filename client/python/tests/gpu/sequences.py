"""Problems with options as tensors on the GPU, and the attention that they ask for."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from definition import attention as defined

from attune import Problem

TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 2e-2}
# The longest first, as they are tuned; empty ones; more queries than keys.
MORE_QUERIES = ([7, 0, 100, 1, 20], [0, 19, 36, 256, 8])


def options_of(problem: Problem) -> dict[str, Any]:
    """The arguments of attune.attention and of the definition."""
    causal = {"none": None, "causal": "top-left"}.get(problem.mask, "bottom-right")
    sinks = torch.linspace(-2, 3, problem.heads_q, device="cuda") if problem.sinks else None
    return {"causal": causal, "window": problem.window or None, "softcap": problem.softcap, "sinks": sinks}


def random(*shape: int, dtype: str, seed: int) -> torch.Tensor:
    """With a mean that is not 0, which would hide errors."""
    made = torch.randn(shape, generator=torch.Generator("cuda").manual_seed(seed), device="cuda") + 0.25
    return made.to({"f16": torch.float16, "bf16": torch.bfloat16}[dtype])


def bounds(lengths: Sequence[int]) -> torch.Tensor:
    return torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32, device="cuda")


def falling(longest: int, batch: int) -> list[int]:
    """The lengths that a problem is tuned on."""
    return [-(-longest * (batch - b) // batch) for b in range(batch)]


def check(
    queries: Sequence[Any], keys: Sequence[Any], values: Sequence[Any], outs: Sequence[Any], lses: Sequence[Any],
    options: dict[str, Any],
) -> None:  # fmt: skip
    """Asserts that each sequence's rows are its attention: [length, heads, head_dim], lse [heads, length]."""
    for q, k, v, out, lse in zip(queries, keys, values, outs, lses, strict=True):
        rows, of_rows = defined(q, k, v, **options)
        tolerance = TOLERANCE[q.dtype]
        torch.testing.assert_close(out.float(), rows, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(lse, of_rows, rtol=2e-3, atol=2e-3)


def in_pages(
    keys: Sequence[torch.Tensor], values: Sequence[torch.Tensor], page_size: int, width: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Scattered pages, NaN wherever no key lies; a table of `width` columns with -1 behind each sequence's last."""
    used = [-(-len(key) // page_size) for key in keys]
    pages = keys[0].new_full((2, sum(used) + 2, page_size, *keys[0].shape[1:]), float("nan"))
    free = torch.randperm(sum(used) + 2, generator=torch.Generator().manual_seed(3)).tolist()
    table = torch.full((len(keys), width), -1, dtype=torch.int32)
    for b, length in enumerate(used):
        for index in range(length):
            page = table[b, index] = free.pop()
            for into, rows in zip(pages, (keys[b], values[b]), strict=True):
                part = rows[index * page_size : (index + 1) * page_size]
                into[page, : len(part)] = part
    return pages[0], pages[1], table.cuda()
