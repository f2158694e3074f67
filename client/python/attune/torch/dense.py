"""attune.attention: SDPA's signature and semantics, and more than its arguments."""

from __future__ import annotations

from torch import Tensor
from torch.compiler import is_dynamo_compiling

from attune.torch import direct
from attune.torch.destination import check_out, is_like
from attune.torch.dispatch import attend, attend_options, by_sdpa
from attune.torch.fallback import Unsuitable, current_stats
from attune.torch.options import options_of


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    causal: str | None = None,
    window: int | None = None,
    softcap: float = 0.0,
    sinks: Tensor | None = None,
    return_lse: bool = False,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """F.scaled_dot_product_attention, computed by the fastest kernel that the service knows for this shape.

    query: [batch, heads_q, seq_q, head_dim], f16 or bf16 on a GPU; key, value: [batch, heads_kv, seq_kv, head_dim],
    with enable_gqa of fewer heads; or all three without the heads. Contiguous, transposed, or views of larger tensors,
    each with strides of its own: nothing is copied. The last dimension must be contiguous, the other strides multiples
    of 8 and addresses of 16 bytes. Only where head_dim is not a multiple of 8 is all of it copied, padded with zeros to
    the next one, and the result as well; strides and addresses are then free.
    is_causal is top-left: row i sees the keys j <= i. Returns a tensor like query, strides included.

    causal: "top-left" (as is_causal) or "bottom-right": row i sees the keys j <= i + seq_kv - seq_q, as
    FlashAttention has it. window: a row sees only the last so many of its causal keys, itself among them; without
    `causal` it is bottom-right. softcap: logits become softcap * tanh(logit / softcap). sinks: fp32, fp16 or bf16
    [heads_q], one more logit for each head, which takes weight and has no value; those of 16 bits are cast each time.
    return_lse: returns (out, lse), lse the natural log-sum-exp of each row, fp32 [batch, heads_q, seq_q]. A row that
    sees no key is 0, its lse -inf or the sink.
    k_scale, v_scale: with key and value of torch.float8_e4m3fn or float8_e5m2, whose elements stand for element *
    scale: fp32 of shape [], [heads_kv] or [batch, heads_kv], of any strides, on query's device, as attune.quantize_kv
    makes them. Strides of key and value are then multiples of 16. A number is not taken: each call would copy it to the
    device.
    out: like query, of any strides, and apart from the inputs in memory: it is written and returned. Where a kernel
    cannot write it (reason "layout"), and where torch computes, the result is copied there.

    The service is asked once a shape, or a range of them, by a background thread: until then SDPA computes. A kernel
    that SDPA could stand in for must be the faster one, as recorded or as the first calls show (attune.configure).
    Whatever no kernel computes (attn_mask, dropout, a scale beyond the kernel's, gradients, other dtypes, no answer) is
    computed by SDPA, too, with one AttuneWarning a reason; what SDPA has no argument for, by unfused attention in
    torch, in fp32. A CUDA graph keeps what computed while it was captured: call `attune.warm` before.
    `attune.configure` says whom to ask. In torch.compile it is the operator attune::attention, or
    attune::attention_options.
    """
    if out is not None:
        check_out("attune.attention", query, value, out)
    stats = given = found = None
    looked = False
    if not is_dynamo_compiling():
        stats = current_stats()
        if scale.__class__ is Tensor:  # as SDPA takes it
            scale = float(scale)  # type: ignore[arg-type]
        at_once = attn_mask is None and dropout_p == 0.0 and k_scale is None and v_scale is None
        if at_once and (out is None or is_like(out, query)):
            given = is_causal, causal, window, softcap, return_lse, scale, enable_gqa
            found, known = direct.dense(stats, query, key, value, sinks, given, out)
            looked = True
            if known.__class__ is not Unsuitable:
                if known is not None:
                    return known
            elif out is None:
                return by_sdpa(stats, known, query, key, value, None, 0.0, is_causal, scale, enable_gqa)
    more = causal is not None or window is not None or softcap or sinks is not None or return_lse
    if not more and k_scale is None and v_scale is None:
        if out is None:
            plain = (query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
            return attend(stats, *plain, looked, found)
        if attn_mask is not None or dropout_p != 0.0:
            return out.copy_(attend(stats, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa))
    options = options_of(is_causal, causal, window, softcap, sinks, return_lse, scale, enable_gqa, k_scale, v_scale)
    return attend_options(stats, query, key, value, attn_mask, dropout_p, options, found, given, out)
