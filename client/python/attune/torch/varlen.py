"""attune.attention for sequences of different lengths: one behind the other (varlen), or with a paged K/V cache."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.compiler import is_compiling, is_dynamo_compiling

from attune.torch import direct
from attune.torch.call import AttentionCall
from attune.torch.destination import check_out, is_like
from attune.torch.dispatch import attend_call, computed
from attune.torch.fallback import current_stats
from attune.torch.options import options_of
from attune.torch.varlen_calls import PagedCall, VarlenCall

Result = Tensor | tuple[Tensor, Tensor]


def attention_varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    *,
    is_causal: bool = False,
    causal: str | None = None,
    window: int | None = None,
    softcap: float = 0.0,
    sinks: Tensor | None = None,
    return_lse: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
    out: Tensor | None = None,
) -> Result:
    """Attention of sequences packed one behind the other, by the fastest kernel that the service knows.

    The arguments are those of FlashAttention's flash_attn_varlen_func. query: [total_q, heads_q, head_dim]; key, value:
    [total_k, heads_kv, head_dim]. Sequence b is the rows cu_seqlens_q[b] to cu_seqlens_q[b + 1] of query, and likewise
    of key and value: int32 [batch + 1], contiguous, on query's device, the first 0 and the last the total.
    max_seqlen_q, max_seqlen_k: no sequence is longer. Lengths may be 0. The other arguments are those of
    attune.attention, "bottom-right" and windows each sequence's own. Returns [total_q, heads_q, head_dim], contiguous
    unless it is `out`; with return_lse also fp32 [heads_q, total_q].

    The problem that the service is asked for has max_seqlen_q and max_seqlen_k rounded up to three significant bits
    (..., 8, 10, 12, 14, 16, 20, ...): calls whose lengths differ a little share one. batch is taken as it is: pad it,
    with sequences of no tokens, where it changes from call to call. cu_seqlens stay on the device and nothing waits for
    it, so that a CUDA graph may capture the call and be replayed with others. Their values are not checked.

    query, key and value may have strides of their own and any head_dim, as for attune.attention. Gradients, other
    dtypes, scales beyond the kernel's, strides and addresses that a kernel cannot read (reason "layout"), problems
    without an answer and everything while the service cannot be reached are computed by unfused attention in torch, in
    fp32, with one AttuneWarning a reason: slowly, and synchronizing with the device, which a graph cannot capture.
    Raises InvalidArgument, naming the argument, its value and what is allowed. In torch.compile it is the operator
    attune::attention_varlen.
    """
    stats = found = None
    given = is_causal, causal, window, softcap, return_lse, scale, enable_gqa
    if out is not None:
        check_out("attune.attention_varlen", query, value, out)
    if not is_dynamo_compiling():
        stats = current_stats()
        if k_scale is None and v_scale is None and (out is None or is_like(out, query)):
            lengths = cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k
            found, known = direct.varlen(stats, query, key, value, lengths, sinks, given, out)
            if known is not None:
                return known
    options = options_of(is_causal, causal, window, softcap, sinks, return_lse, scale, enable_gqa, k_scale, v_scale)
    call = VarlenCall(query, key, value, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, options, out=out)
    if not is_compiling():
        result = attend_call(stats, call)
        direct.remember_call(found, given, call, query, result)
        return result
    if _needs_grad(call):
        return computed(call)
    made, lse = torch.ops.attune.attention_varlen(
        query, key, value, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, *options
    )
    out = made if out is None else out.copy_(made)
    return (out, lse) if return_lse else out


def attention_paged(
    query: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    block_table: Tensor,
    seqused_k: Tensor,
    *,
    cu_seqlens_q: Tensor | None = None,
    max_seqlen_q: int | None = None,
    is_causal: bool = False,
    causal: str | None = None,
    window: int | None = None,
    softcap: float = 0.0,
    sinks: Tensor | None = None,
    return_lse: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
    out: Tensor | None = None,
) -> Result:
    """Attention to a paged K/V cache, by the fastest kernel that the service knows.

    query: [batch, seq_q, heads_q, head_dim]; key_pages, value_pages: [pages, page_size, heads_kv, head_dim],
    each with strides of its own, as for attune.attention. Key j of sequence b is row j % page_size of page
    block_table[b][j // page_size]: int32 [batch, width]; seqused_k: int32 [batch], how many keys each sequence has
    (cache_seqlens). Entries behind a sequence's last page are not read; rows behind its end may hold anything. With
    cu_seqlens_q and max_seqlen_q (see attention_varlen) query is [total_q, heads_q, head_dim]. The other arguments are
    those of attune.attention, "bottom-right" and windows each sequence's own: decoding and chunked prefill are
    causal="bottom-right". Returns `out`, or a contiguous tensor of query's shape; with return_lse also fp32 [batch,
    heads_q, seq_q] or [heads_q, total_q].

    The problem that the service is asked for has max_seqlen_q rounded up to three significant bits, but width *
    page_size, its seq_kv, and batch as they are: where shapes change from call to call, keep the table's width and the
    batch fixed, by padding them. seqused_k and block_table stay on the device, as attention_varlen's cu_seqlens do.
    What falls back does so as there, strides that a kernel cannot read among it, such as those of pages that are not
    one behind the other to one that takes no others, and a head_dim that is not a multiple of 8. Pages that are not
    aligned to 16 bytes are an InvalidArgument. In torch.compile it is the operator attune::attention_paged.
    """
    stats = found = None
    given = is_causal, causal, window, softcap, return_lse, scale, enable_gqa
    numbers = block_table, seqused_k, cu_seqlens_q, max_seqlen_q
    if out is not None:
        check_out("attune.attention_paged", query, value_pages, out)
    if not is_dynamo_compiling():
        stats = current_stats()
        if k_scale is None and v_scale is None and (out is None or is_like(out, query)):
            found, known = direct.paged(stats, query, key_pages, value_pages, numbers, sinks, given, out)
            if known is not None:
                return known
    options = options_of(is_causal, causal, window, softcap, sinks, return_lse, scale, enable_gqa, k_scale, v_scale)
    call = PagedCall(query, key_pages, value_pages, *numbers, options, out=out)
    if not is_compiling():
        result = attend_call(stats, call)
        direct.remember_call(found, given, call, query, result)
        return result
    if _needs_grad(call):
        return computed(call)
    made, lse = torch.ops.attune.attention_paged(
        query, key_pages, value_pages, block_table, seqused_k, cu_seqlens_q, max_seqlen_q, *options
    )
    out = made if out is None else out.copy_(made)
    return (out, lse) if return_lse else out


def _needs_grad(call: AttentionCall) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in call.tensors())
