"""`out=`: where the caller wants the result."""

from __future__ import annotations

from torch import Tensor

from attune.errors import InvalidArgument


def check_out(what: str, query: Tensor, value: Tensor, out: Tensor) -> None:
    """Raises InvalidArgument unless `out` can hold what `what` computes."""
    if not isinstance(out, Tensor):
        raise InvalidArgument(f"{what}: out is of type {type(out).__name__}; it must be a tensor or None")
    shape = (*query.shape[:-1], value.shape[-1])
    if out.shape != shape or out.dtype is not query.dtype or out.device != query.device:
        given = f"shape {tuple(out.shape)} and dtype {out.dtype}, on {out.device}"
        raise InvalidArgument(f"{what}: out has {given}; it must have {shape} and {query.dtype}, on {query.device}")


def is_like(out: Tensor, query: Tensor) -> bool:
    """Whether a kernel writes `out` as it writes a new tensor like `query`."""
    return out.__class__ is Tensor and out.stride() == query.stride() and not out.is_neg() and not out.data_ptr() & 15
