"""What a problem asks of each tensor, and errors that say how an argument differs."""

from __future__ import annotations

from dataclasses import dataclass

from attune.cuda.arrays import Array, contiguous_strides
from attune.errors import InvalidArgument
from attune.problem import Problem

# Kernels load 16 bytes at once.
ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class Expected:
    """Of one argument."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    dtype: str
    layout: str
    alignment: int  # of the address, in bytes

    def check(self, name: str, array: Array, device: int) -> None:
        """Raises InvalidArgument when `array` is not laid out so, or lies on another device."""
        if array.dtype != self.dtype:
            raise InvalidArgument(f"{name} has dtype {array.dtype}; the problem's is {self.dtype}")
        if array.shape != self.shape:
            raise InvalidArgument(f"{name} has shape {array.shape}; the problem's is {self.shape}")
        # The stride of a dimension of size 1 means nothing.
        if any(a != b for a, b, size in zip(array.strides, self.strides, self.shape, strict=True) if size > 1):
            raise InvalidArgument(
                f"{name} has strides {array.strides}; layout {self.layout} has {self.strides} (elements)"
            )
        if array.device not in (None, device):
            raise InvalidArgument(f"{name} is on cuda:{array.device}; the kernel was loaded on cuda:{device}")
        if array.address % self.alignment:
            raise InvalidArgument(
                f"{name} is at address {array.address:#x}; it must be a multiple of {self.alignment} bytes"
            )


def expected(problem: Problem) -> dict[str, Expected]:
    """By argument: Q and O [batch, heads_q, seq_q, head_dim], K and V [batch, heads_kv, seq_kv, head_dim], LSE [batch,
    heads_q, seq_q]. The shapes are the same in both layouts, as torch has them: the strides differ."""
    q = _tensor(problem, problem.heads_q, problem.seq_q)
    kv = _tensor(problem, problem.heads_kv, problem.seq_kv)
    rows = (problem.batch, problem.heads_q, problem.seq_q)
    lse = Expected(rows, contiguous_strides(rows), "f32", "of lse", 4)
    return {"q": q, "k": kv, "v": kv, "out": q, "lse": lse}


def _tensor(problem: Problem, heads: int, length: int) -> Expected:
    shape = (problem.batch, heads, length, problem.head_dim)
    strides = contiguous_strides(shape)
    if problem.layout == "bshd":
        batch, row, head, one = contiguous_strides((problem.batch, length, heads, problem.head_dim))
        strides = (batch, head, row, one)
    return Expected(shape, strides, problem.dtype, problem.layout, ALIGNMENT)
