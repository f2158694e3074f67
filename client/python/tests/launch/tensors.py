"""Tensors of the launch tests: random ones, the same in every run, and lengths as int32."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch")


def tensor(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 1) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def half(*shape: int) -> torch.Tensor:
    return tensor(*shape, dtype=torch.float16)


def ints(*values: object) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def bounds(lengths: list[int]) -> torch.Tensor:
    """[0, lengths[0], lengths[0] + lengths[1], ...]: cu_seqlens."""
    return ints(0, *itertools.accumulate(lengths))
