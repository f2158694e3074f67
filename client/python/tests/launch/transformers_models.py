"""Models of transformers with random weights, small enough for the CPU."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", minversion="5.23")

import attune.transformers  # noqa: E402, F401 (it registers the implementation)

LAYERS, WINDOW = 2, 6
SIZES = {
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 64,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": 0,
    "initializer_range": 0.2,
}
Model = Any


def llama() -> Model:
    return made(transformers.LlamaForCausalLM, transformers.LlamaConfig(**SIZES))


def made(kind: Any, config: Any) -> Model:
    torch.manual_seed(0)
    return kind(config).half().eval()


def text(length: int, batch: int = 2, seed: int = 0) -> Any:
    return torch.randint(1, 64, (batch, length), generator=torch.Generator().manual_seed(seed))


def logits_of(model: Model, implementation: str, *steps: Any, cache: Any = None, **given: Any) -> list[Any]:
    """After each of `steps`, of one sequence."""
    model.set_attn_implementation(implementation)
    found = []
    with torch.no_grad():
        for step in steps:
            out = model(input_ids=step, past_key_values=cache, use_cache=True, **given)
            cache = out.past_key_values
            found.append(out.logits)
    return found


def close(found: list[Any], expected: list[Any]) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=2e-2, atol=2e-2)


def mistral() -> Model:
    return made(transformers.MistralForCausalLM, transformers.MistralConfig(**SIZES, sliding_window=WINDOW))


def gemma2() -> Model:
    """One layer with a window and one without, both with a softcap and a scale of their own."""
    layers = ["sliding_attention", "full_attention"]
    softcaps = {"attn_logit_softcapping": 5.0, "query_pre_attn_scalar": 64}
    config = transformers.Gemma2Config(**SIZES, sliding_window=WINDOW, layer_types=layers, **softcaps)
    return made(transformers.Gemma2ForCausalLM, config)


def gpt_oss(layers: tuple[str, str] = ("sliding_attention", "full_attention")) -> Model:
    """Layers with a window and without one, all with sinks."""
    experts = {"num_local_experts": 2, "num_experts_per_tok": 1}
    config = transformers.GptOssConfig(**SIZES, sliding_window=WINDOW, layer_types=list(layers), **experts)
    return made(transformers.GptOssForCausalLM, config)


def gpt_oss_without_windows() -> Model:
    return gpt_oss(("full_attention", "full_attention"))
