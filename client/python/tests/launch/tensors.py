"""Tensors of the launch tests: random ones, the same in every run, and lengths as int32."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402


def tensor(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 1) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def half(*shape: int) -> torch.Tensor:
    return tensor(*shape, dtype=torch.float16)


def ints(*values: object) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def bounds(lengths: list[int]) -> torch.Tensor:
    """[0, lengths[0], lengths[0] + lengths[1], ...]: cu_seqlens."""
    return ints(0, *itertools.accumulate(lengths))


class _Largest(TorchDispatchMode):
    bytes = 0

    def __torch_dispatch__(self, operation: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = operation(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.bytes = max(self.bytes, result.untyped_storage().nbytes())
        return result


def largest_memory(call: Callable[[], object]) -> int:
    """Bytes of the largest memory that one of torch's operations returned meanwhile, the inputs' views among them."""
    with _Largest() as largest:
        call()
    return largest.bytes
