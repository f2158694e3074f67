"""Attention for torch: `attention` has the signature and the semantics of F.scaled_dot_product_attention, and runs the
kernel that the service knows to be the fastest for the shape at hand, or SDPA itself where there is none.
`attention_varlen` and `attention_paged` are the same for sequences of their own lengths and keys in pages."""

from __future__ import annotations

from attune.background.settings import configure
from attune.torch import (
    flash_backend,
    operator,  # noqa: F401 (it registers the operators)
)
from attune.torch.dense import attention
from attune.torch.fallback import AttuneWarning
from attune.torch.model_coverage import coverage
from attune.torch.process import refresh, state
from attune.torch.quantize_kv import QuantizedKv, quantize_kv
from attune.torch.replace import count_calls, replace_sdpa
from attune.torch.varlen import attention_paged, attention_varlen
from attune.torch.warming import warm

flash_backend.register()

__all__ = [
    "AttuneWarning",
    "QuantizedKv",
    "attention",
    "attention_paged",
    "attention_varlen",
    "configure",
    "count_calls",
    "coverage",
    "quantize_kv",
    "refresh",
    "replace_sdpa",
    "state",
    "warm",
]
