"""Sinks in 16 bits, as models have them, in the fp32 that kernels read."""

from __future__ import annotations

import torch
from torch import Tensor


def in_fp32(sinks: Tensor) -> Tensor:
    """`sinks` for a launch on the current stream. Cast in every call: nothing tells of all that is written to a tensor,
    collectives and replayed graphs among it."""
    return sinks if sinks.dtype is torch.float32 else sinks.detach().float()
