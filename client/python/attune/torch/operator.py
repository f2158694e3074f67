"""The operators that torch.compile and torch.export keep in their graphs: attune::attention, attention_options,
attention_varlen and attention_paged. Those that may return a log-sum-exp always return two tensors, the second empty
unless it was asked for: an operator has one number of results."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attune.torch.call import AttentionCall
from attune.torch.dense_call import DenseCall
from attune.torch.dispatch import attend, attend_call
from attune.torch.fallback import current_stats
from attune.torch.options import Options
from attune.torch.problem_of_tensors import new_output
from attune.torch.varlen_calls import PagedCall, VarlenCall


@torch.library.custom_op("attune::attention", mutates_args=())
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`attune.attention` without mask and dropout, for inference. Returns a tensor as `new_output` lays it out."""
    with torch.no_grad():
        result = attend(current_stats(), query, key, value, None, 0.0, is_causal, scale, enable_gqa)
    like = new_output(query)
    # SDPA lays its result out as it likes; a graph was made for one layout.
    return result if result.stride() == like.stride() else like.copy_(result)


@attention.register_fake
def _(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    return new_output(query)


@torch.library.custom_op("attune::attention_options", mutates_args=())
def attention_options(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    return_lse: bool,
    scale: float | None,
    enable_gqa: bool,
) -> tuple[Tensor, Tensor]:
    options = Options(causal, window, softcap, sinks, return_lse, scale, enable_gqa)
    return _run(DenseCall(query, key, value, options))


@attention_options.register_fake
def _(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    return_lse: bool,
    scale: float | None,
    enable_gqa: bool,
) -> tuple[Tensor, Tensor]:
    return new_output(query), _fake_lse(query, query.shape[:-1], return_lse)


@torch.library.custom_op("attune::attention_varlen", mutates_args=())
def attention_varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    return_lse: bool,
    scale: float | None,
    enable_gqa: bool,
) -> tuple[Tensor, Tensor]:
    options = Options(causal, window, softcap, sinks, return_lse, scale, enable_gqa)
    return _run(VarlenCall(query, key, value, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, options))


@attention_varlen.register_fake
def _(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    return_lse: bool,
    scale: float | None,
    enable_gqa: bool,
) -> tuple[Tensor, Tensor]:
    return _fake_rows(query, value), _fake_lse(query, (query.shape[1], query.shape[0]), return_lse)


@torch.library.custom_op("attune::attention_paged", mutates_args=())
def attention_paged(
    query: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    block_table: Tensor,
    seqused_k: Tensor,
    cu_seqlens_q: Tensor | None,
    max_seqlen_q: int | None,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    return_lse: bool,
    scale: float | None,
    enable_gqa: bool,
) -> tuple[Tensor, Tensor]:
    options = Options(causal, window, softcap, sinks, return_lse, scale, enable_gqa)
    return _run(PagedCall(query, key_pages, value_pages, block_table, seqused_k, cu_seqlens_q, max_seqlen_q, options))


@attention_paged.register_fake
def _(
    query: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    block_table: Tensor,
    seqused_k: Tensor,
    cu_seqlens_q: Tensor | None,
    max_seqlen_q: int | None,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    return_lse: bool,
    scale: float | None,
    enable_gqa: bool,
) -> tuple[Tensor, Tensor]:
    return _fake_rows(query, value_pages), _fake_lse(query, _paged_rows(query), return_lse)


def _run(call: AttentionCall) -> tuple[Tensor, Tensor]:
    query, value = call.shaped(call.query), call.value
    with torch.no_grad():
        result = attend_call(current_stats(), call)
    out, lse = result if call.options.return_lse else (result, query.new_empty(0, dtype=torch.float32))
    like = new_output(query) if isinstance(call, DenseCall) else _fake_rows(query, value)
    return (out if out.stride() == like.stride() else like.copy_(out)), lse.contiguous()


def _fake_rows(query: Tensor, value: Tensor) -> Tensor:
    return query.new_empty((*query.shape[:-1], value.shape[-1]))


def _fake_lse(query: Tensor, rows: Sequence[int], return_lse: bool) -> Tensor:
    return query.new_empty(rows if return_lse else (0,), dtype=torch.float32)


def _paged_rows(query: Tensor) -> tuple[int, ...]:
    """[batch, seq_q, heads, head_dim] or [total_q, heads, head_dim]: the rows of its log-sum-exp."""
    return (*query.shape[:-3], query.shape[-2], query.shape[-3])
