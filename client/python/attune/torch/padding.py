"""Tensors padded to a head dimension that kernels take. They are copies, so that a contest decides whether it pays."""

from __future__ import annotations

from torch import Tensor

from attune.background.head_dims import padded_dim


def needs_padding(query: Tensor) -> bool:
    return padded_dim(query.shape[-1]) != query.shape[-1]


def widened(tensor: Tensor) -> Tensor:
    """`tensor`, contiguous, with columns of zeros behind its own: they add nothing to a logit."""
    head_dim = tensor.shape[-1]
    wide = tensor.new_zeros((*tensor.shape[:-1], padded_dim(head_dim)))
    wide[..., :head_dim] = tensor
    return wide


def narrow(wide: Tensor, out: Tensor) -> Tensor:
    """`out`, with those columns of `wide` that it has."""
    return out.copy_(wide[..., : out.shape[-1]])
