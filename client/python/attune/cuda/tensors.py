"""What a problem asks of each tensor, and errors that say how an argument differs."""

from __future__ import annotations

from collections.abc import Mapping
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
    layout: str  # as the error calls it
    alignment: int  # of the address, in bytes

    def check(self, name: str, array: Array, device: int) -> None:
        """Raises InvalidArgument when `array` is not so, but for its strides, or lies on another device."""
        if array.dtype != self.dtype:
            raise InvalidArgument(f"{name} has dtype {array.dtype}; the problem's is {self.dtype}")
        if array.shape != self.shape:
            raise InvalidArgument(f"{name} has shape {array.shape}; the problem's is {self.shape}")
        if array.device not in (None, device):
            raise InvalidArgument(f"{name} is on cuda:{array.device}; the kernel was loaded on cuda:{device}")
        if array.address % self.alignment:
            raise InvalidArgument(
                f"{name} is at address {array.address:#x}; it must be a multiple of {self.alignment} bytes"
            )

    def check_strides(self, name: str, array: Array, dimensions: slice = slice(None)) -> None:
        """Raises InvalidArgument when `array`, of this shape, has other strides in these dimensions."""
        found = zip(array.strides[dimensions], self.strides[dimensions], self.shape[dimensions], strict=True)
        # The stride of a dimension of size 1 means nothing.
        if any(stride != wanted for stride, wanted, size in found if size > 1):
            raise InvalidArgument(f"{name} has strides {array.strides}; {self.layout} has {self.strides} (elements)")


# In the order of a launch's addresses.
ARGUMENTS = (
    *("q", "k", "v", "out", "lse"),
    *("sinks", "cu_seqlens_q", "cu_seqlens_k", "seqused_k", "block_table", "k_scale", "v_scale"),
)
SCALES = ("k_scale", "v_scale")


def arguments_of(problem: Problem) -> frozenset[str]:
    """The arguments that `problem` has."""
    paged = problem.page_size > 0
    optional = {
        "lse": problem.lse,
        "sinks": problem.sinks,
        "cu_seqlens_q": problem.varlen,
        "cu_seqlens_k": problem.varlen and not paged,
        "seqused_k": paged,
        "block_table": paged,
        "k_scale": bool(problem.kv_dtype),
        "v_scale": bool(problem.kv_dtype),
    }
    return frozenset(name for name in ARGUMENTS if optional.get(name, True))


def expected(problem: Problem, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Expected]:
    """By argument of `problem`, as docs/problems.md has them. q, k, v and out are [batch, heads, length, head_dim] in
    both layouts, as torch has them: the strides differ. `shapes` are the arguments' own, from which come the numbers of
    tokens and pages that a problem leaves open, and whether scales are by batch and KV head, by KV head or one."""
    of_k = problem.kv_dtype or problem.dtype
    q = _tensor(problem, problem.heads_q, problem.seq_q, problem.dtype)
    lse = (problem.batch, problem.heads_q, problem.seq_q)
    if problem.varlen:
        tokens = _first(shapes["q"])
        q = _rows(problem.dtype, (tokens, problem.heads_q, problem.head_dim))
        lse = (problem.heads_q, tokens)
    if problem.page_size:
        k = _rows(of_k, (_first(shapes["k"]), problem.page_size, problem.heads_kv, problem.head_dim))
    elif problem.varlen:
        k = _rows(of_k, (_first(shapes["k"]), problem.heads_kv, problem.head_dim))
    else:
        k = _tensor(problem, problem.heads_kv, problem.seq_kv, of_k)
    found = {
        "q": q,
        "k": k,
        "v": k,
        "out": q,
        "lse": _numbers(lse, "f32"),
        "sinks": _numbers((problem.heads_q,), "f32"),
        "cu_seqlens_q": _numbers((problem.batch + 1,), "i32"),
        "cu_seqlens_k": _numbers((problem.batch + 1,), "i32"),
        "seqused_k": _numbers((problem.batch,), "i32"),
    }
    if problem.page_size:
        found["block_table"] = _numbers((problem.batch, -(-problem.seq_kv // problem.page_size)), "i32")
    for name in SCALES if problem.kv_dtype else ():
        found[name] = _numbers(_scale_shape(problem, shapes.get(name)), "f32")
    asked_for = arguments_of(problem)
    return {name: found[name] for name in ARGUMENTS if name in asked_for}


def _first(shape: tuple[int, ...]) -> int:
    return shape[0] if shape else 0


def _scale_shape(problem: Problem, shape: tuple[int, ...] | None) -> tuple[int, ...]:
    """`shape` itself where a scale may have it."""
    by_head = (problem.heads_kv,)
    return shape if shape in ((), by_head) and shape is not None else (problem.batch, *by_head)


def _tensor(problem: Problem, heads: int, length: int, dtype: str) -> Expected:
    shape = (problem.batch, heads, length, problem.head_dim)
    strides = contiguous_strides(shape)
    if problem.layout == "bshd":
        batch, row, head, one = contiguous_strides((problem.batch, length, heads, problem.head_dim))
        strides = (batch, head, row, one)
    return Expected(shape, strides, dtype, f"layout {problem.layout}", ALIGNMENT)


def _rows(dtype: str, shape: tuple[int, ...]) -> Expected:
    return Expected(shape, contiguous_strides(shape), dtype, "a contiguous array", ALIGNMENT)


def _numbers(shape: tuple[int, ...], dtype: str) -> Expected:
    return Expected(shape, contiguous_strides(shape), dtype, "a contiguous array", 4)
