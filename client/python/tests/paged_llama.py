"""transformers' Llama over a paged cache of 8 bits: attune.attention_paged reads what each layer has quantised and put
in its pages. The same tokens, and the same cache, then go through the model with plain attention.

Every pass but the first reads the cache as the first has left it at that token. The model computes in fp32, attention
on a query of 16 bits: what differs is attention alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import transformers
from definition import attention as defined
from torch import Tensor

import attune
from attune.torch import quantize_kv

BATCH, PAGE = 2, 16
HEADS, KV_HEADS, HEAD_DIM = 8, 2, 64
TOLERANCE = {torch.float16: 1e-3, torch.bfloat16: 1e-2}  # the daemon's
NAME = "attune_paged_8bit"
# A cache has its scales before it has its tokens: what a head's keys and values reach here, over the largest code.
LARGEST = {"key": 4.0, "value": 2.0}

Attend = Callable[[Tensor, "Cache"], Tensor]


class Errors(NamedTuple):
    """Of all logits, against the model whose attention is exact on the dequantised cache."""

    attune: float  # largest error
    plain: float  # and with attention as an unfused computation has it that rounds each step
    share: float  # attune's largest error as a share of tolerance + tolerance * |exact|


class Cache:
    """Keys and values of one layer, in pages that lie in no order."""

    def __init__(self, capacity: int, dtype: torch.dtype, device: str) -> None:
        width = -(-capacity // PAGE)
        order = torch.randperm(BATCH * width, generator=torch.Generator().manual_seed(1))
        self.table = order.to(device=device, dtype=torch.int32).view(BATCH, width)
        self.used = torch.zeros(BATCH, dtype=torch.int32, device=device)
        shape = BATCH * width, PAGE, KV_HEADS, HEAD_DIM
        # Rows behind the last key are NaN, which attention must not see.
        nan = torch.full(shape, float("nan"), device=device)
        self.key, self.value = (nan.to(dtype) for _ in range(2))
        heads = torch.linspace(0.75, 1.25, KV_HEADS, device=device)
        most = torch.finfo(dtype).max
        self.k_scale, self.v_scale = (LARGEST[name] * heads / most for name in ("key", "value"))

    def append(self, key: Tensor, value: Tensor) -> None:
        """[batch, heads_kv, length, head_dim], behind what is there."""
        start, length = int(self.used[0]), key.shape[2]
        at = torch.arange(start, start + length, device=key.device)
        page, row = self.table[:, at // PAGE].long(), at % PAGE
        for new, pages, scale in ((key, self.key, self.k_scale), (value, self.value, self.v_scale)):
            elements = quantize_kv(new, pages.dtype, scale=scale).elements
            # torch indexes no 8-bit floats everywhere: their bytes it does.
            pages.view(torch.uint8)[page, row] = elements.transpose(1, 2).contiguous().view(torch.uint8)
        self.used += length

    def dequantised(self) -> tuple[Tensor, Tensor]:
        """[batch, length, heads_kv, head_dim] in fp32."""
        length = int(self.used[0])
        both = []
        for pages, scale in ((self.key, self.k_scale), (self.value, self.v_scale)):
            rows = pages.view(torch.uint8)[self.table.long()].flatten(1, 2)[:, :length].contiguous()
            both.append(rows.view(pages.dtype).float() * scale[:, None])
        return both[0], both[1]


def by_attune(query: Tensor, cache: Cache) -> Tensor:
    """Of [batch, length, heads, head_dim]."""
    return attune.attention_paged(
        *(query, cache.key, cache.value, cache.table, cache.used),
        causal="bottom-right",
        enable_gqa=True,
        k_scale=cache.k_scale,
        v_scale=cache.v_scale,
    )


def by_definition(query: Tensor, cache: Cache) -> Tensor:
    given = zip(query, *cache.dequantised(), strict=True)
    return torch.stack([defined(*each, causal="bottom-right")[0] for each in given])


def step_by_step(query: Tensor, cache: Cache) -> Tensor:
    """Q K^T, the scaled logits, P and O, each rounded to the query's dtype."""
    keys, values = (
        x.to(query.dtype).transpose(1, 2).repeat_interleave(HEADS // KV_HEADS, 1) for x in cache.dequantised()
    )
    rows, length = query.shape[1], keys.shape[2]
    logits = query.transpose(1, 2) @ keys.mT * HEAD_DIM**-0.5
    hidden = torch.ones(rows, length, dtype=torch.bool, device=query.device).triu(length - rows + 1)
    weights = logits.float().masked_fill(hidden, float("-inf")).softmax(-1).to(query.dtype)
    return (weights @ values).transpose(1, 2)


def llama(layers: int, device: str) -> Any:
    config = transformers.LlamaConfig(
        hidden_size=HEADS * HEAD_DIM,
        intermediate_size=HEADS * HEAD_DIM,
        num_hidden_layers=layers,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        vocab_size=256,
        # Weights large enough that attention has something to choose.
        initializer_range=0.03,
        attn_implementation="eager",
    )
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(config).to(device).eval()


ATTENTIONS: dict[str, Attend] = {"attune": by_attune, "plain": step_by_step, "exact": by_definition}


class Decoding:
    """One sequence of tokens, by one attention after the other."""

    def __init__(self, model: Any, capacity: int, dtype: torch.dtype, kv_dtype: torch.dtype) -> None:
        self._model, self._dtype, self._length = model, dtype, 0
        self._caches = [Cache(capacity, kv_dtype, model.device.type) for _ in model.model.layers]
        self._attend: Attend = by_attune
        transformers.AttentionInterface.register(NAME, self._attended)
        model.set_attn_implementation(NAME)

    def step(self, tokens: Tensor) -> dict[str, Tensor]:
        """Logits of the last of `tokens` [batch, length], by each attention."""
        positions = torch.arange(self._length, self._length + tokens.shape[1], device=tokens.device)[None]
        self._length += tokens.shape[1]
        found = {}
        for name, self._attend in ATTENTIONS.items():
            out = self._model(input_ids=tokens, position_ids=positions, use_cache=False, logits_to_keep=1)
            found[name] = out.logits[:, -1]
        return found

    def _attended(self, module: Any, query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> tuple[Any, None]:
        """As transformers calls it: of [batch, heads, length, head_dim], to [batch, length, heads, head_dim]."""
        cache = self._caches[module.layer_idx]
        if self._attend is by_attune:
            cache.append(key, value)
        return self._attend(query.transpose(1, 2).to(self._dtype), cache).float(), None


@torch.inference_mode()
def errors(dtype: torch.dtype, kv_dtype: torch.dtype, device: str, prompt: int, tokens: int, layers: int = 2) -> Errors:
    """Of a prompt and `tokens` greedy ones."""
    decoding = Decoding(llama(layers, device), prompt + tokens, dtype, kv_dtype)
    text = torch.randint(256, (BATCH, prompt), generator=torch.Generator().manual_seed(2)).to(device)
    found = []
    for _ in range(tokens + 1):
        found.append(decoding.step(text))
        text = found[-1]["exact"].argmax(-1, keepdim=True)
    ours, plain, exact = (torch.stack([each[name] for each in found]) for name in ATTENTIONS)
    tolerance = TOLERANCE[dtype]
    share = (ours - exact).abs() / (tolerance + tolerance * exact.abs())
    return Errors(*(float(x.max()) for x in ((ours - exact).abs(), (plain - exact).abs(), share)))
