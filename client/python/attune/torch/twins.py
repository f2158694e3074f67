"""attune.attention for sequences of their own lengths."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.compiler import is_compiling

from attune.torch.dispatch import attend_form, computed
from attune.torch.fallback import current_stats
from attune.torch.form import Form
from attune.torch.options import options_of
from attune.torch.sequences import Paged, Varlen

Result = Tensor | tuple[Tensor, Tensor]


def attention_varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    q_bounds: Tensor,
    kv_bounds: Tensor,
    max_q: int,
    max_kv: int,
    *,
    is_causal: bool = False,
    causal: str | None = None,
    window: int | None = None,
    softcap: float = 0.0,
    sinks: Tensor | None = None,
    return_lse: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Result:
    """Attention of sequences that lie one behind the other, by the fastest kernel that the service knows.

    query: [total_q, heads_q, head_dim]; key, value: [total_kv, heads_kv, head_dim]. Sequence b is the rows q_bounds[b]
    to q_bounds[b + 1] of query, and likewise of key and value: int32 [batch + 1], contiguous, on query's device, the
    first 0 and the last the total. max_q, max_kv: no sequence is longer. Elsewhere these are called cu_seqlens_q,
    cu_seqlens_k, max_seqlen_q and max_seqlen_k. Lengths may be 0. The other arguments are those of attune.attention,
    "bottom-right" and windows each sequence's own. Returns [total_q, heads_q, head_dim], contiguous; with return_lse
    also fp32 [heads_q, total_q].

    The problem that the service is asked for has max_q and max_kv rounded up to three significant bits (..., 8, 10, 12,
    14, 16, 20, ...): calls whose lengths differ a little share one. batch is taken as it is: pad it, with sequences of
    no tokens, where it changes from call to call. Bounds stay on the device and nothing waits for it, so that a CUDA
    graph may capture the call and be replayed with other bounds. What they say is not checked.

    Gradients, other dtypes, other scales, problems without an answer and everything while the service cannot be reached
    are computed in plain torch, in fp32, with one AttuneWarning a reason: slowly, and waiting for the device, which a
    graph cannot capture. query, key and value that are not contiguous are copied. Raises InvalidArgument, naming the
    argument, its value and what is allowed. In torch.compile it is the operator attune::attention_varlen.
    """
    options = options_of(is_causal, causal, window, softcap, sinks, return_lse, scale, enable_gqa)
    form = Varlen(query, key, value, q_bounds, kv_bounds, max_q, max_kv, options)
    if not is_compiling():
        return attend_form(current_stats(), form)
    if _needs_grad(form):
        return computed(form)
    out, lse = torch.ops.attune.attention_varlen(query, key, value, q_bounds, kv_bounds, max_q, max_kv, *options)
    return (out, lse) if return_lse else out


def attention_paged(
    query: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    page_table: Tensor,
    kv_lengths: Tensor,
    *,
    q_bounds: Tensor | None = None,
    max_q: int | None = None,
    is_causal: bool = False,
    causal: str | None = None,
    window: int | None = None,
    softcap: float = 0.0,
    sinks: Tensor | None = None,
    return_lse: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Result:
    """Attention to keys and values in pages, by the fastest kernel that the service knows.

    query: [batch, seq_q, heads_q, head_dim]; key_pages, value_pages: [pages, page_size, heads_kv, head_dim],
    contiguous. Key j of sequence b is row j % page_size of page page_table[b][j // page_size]: int32 [batch, width];
    kv_lengths: int32 [batch], how many keys each sequence has. Elsewhere these are called block_table (or page table)
    and seqused_k (or cache_seqlens, seq_lens). Entries behind a sequence's last page are not read; rows behind its end
    may hold anything. With q_bounds and max_q (see attention_varlen) query is [total_q, heads_q, head_dim]. The other
    arguments are those of attune.attention, "bottom-right" and windows each sequence's own: decoding and chunked
    prefill are causal="bottom-right". Returns a contiguous tensor of query's shape; with return_lse also fp32 [batch,
    heads_q, seq_q] or [heads_q, total_q].

    The problem that the service is asked for has max_q rounded up to three significant bits, but width * page_size, its
    seq_kv, and batch as they are: where shapes change from call to call, keep the table's width and the batch fixed, by
    padding them. Lengths and table stay on the device, as attention_varlen's bounds do. What falls back does so as
    there; pages are never copied: InvalidArgument for other strides, and for an address that is no multiple of 16. In
    torch.compile it is the operator attune::attention_paged.
    """
    options = options_of(is_causal, causal, window, softcap, sinks, return_lse, scale, enable_gqa)
    form = Paged(query, key_pages, value_pages, page_table, kv_lengths, q_bounds, max_q, options)
    if not is_compiling():
        return attend_form(current_stats(), form)
    if _needs_grad(form):
        return computed(form)
    out, lse = torch.ops.attune.attention_paged(
        query, key_pages, value_pages, page_table, kv_lengths, q_bounds, max_q, *options
    )
    return (out, lse) if return_lse else out


def _needs_grad(form: Form) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in form.tensors())
