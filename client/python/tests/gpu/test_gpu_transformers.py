"""transformers' models whose attention implementation is "attune": generate, as it is and compiled."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gpu_problems import DEVICE

import attune

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", minversion="5.23")

import attune.transformers  # noqa: E402
from attune.background.settings import ACCEPTABLE  # noqa: E402

LAYERS, VOCABULARY, WINDOW = 2, 512, 128
BATCH, PROMPT, TOKENS = 2, 300, 24
SIZES = {
    "hidden_size": 512,
    "intermediate_size": 512,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": VOCABULARY,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": 0,
}
Model = Any


@pytest.fixture(autouse=True)
def configured(client_of_any: attune.Client) -> Iterator[None]:
    """Every call is attune's, tuned or not."""
    acceptable = (*ACCEPTABLE, attune.Provenance.HEURISTIC)
    attune.configure(client_of_any, device=DEVICE, acceptable=acceptable, wait=120.0, never_slower=False)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
    attune.refresh()


def made(kind: Any, config: Any) -> Model:
    torch.manual_seed(0)
    return kind(config).bfloat16().cuda().eval()


def llama() -> Model:
    return made(transformers.LlamaForCausalLM, transformers.LlamaConfig(**SIZES))


def mistral() -> Model:
    return made(transformers.MistralForCausalLM, transformers.MistralConfig(**SIZES, sliding_window=WINDOW))


def gemma2() -> Model:
    """A softcap, and a window in one of two layers."""
    layers = ["sliding_attention", "full_attention"]
    config = transformers.Gemma2Config(**SIZES, sliding_window=WINDOW, layer_types=layers, query_pre_attn_scalar=64)
    return made(transformers.Gemma2ForCausalLM, config)


def gpt_oss() -> Model:
    """Sinks, and a window in one of two layers."""
    layers, experts = ["sliding_attention", "full_attention"], {"num_local_experts": 2, "num_experts_per_tok": 1}
    config = transformers.GptOssConfig(**SIZES, sliding_window=WINDOW, layer_types=layers, **experts)
    return made(transformers.GptOssForCausalLM, config)


def text(seed: int, length: int = PROMPT) -> Any:
    return torch.randint(1, VOCABULARY, (BATCH, length), generator=torch.Generator().manual_seed(seed)).cuda()


class Forced(transformers.LogitsProcessor):
    """Chooses the tokens of `given`."""

    def __init__(self, given: Any) -> None:
        self._given = given

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        chosen = self._given[:, input_ids.shape[1]].unsqueeze(1)
        return torch.full_like(scores, -torch.inf).scatter(1, chosen, 0.0)


def generated(model: Model, implementation: str, prompt: Any, given: Any = None, **more: Any) -> tuple[Any, Any]:
    """The tokens, greedy or those `given`, and the logits of each step."""
    model.set_attn_implementation(implementation)
    forced = [] if given is None else [Forced(given)]
    with torch.inference_mode():
        out = model.generate(
            prompt,
            max_new_tokens=TOKENS,
            do_sample=False,
            logits_processor=transformers.LogitsProcessorList(forced),
            output_logits=True,
            return_dict_in_generate=True,
            **more,
        )
    return out.sequences, torch.stack([logits.float() for logits in out.logits])


def hold(model: Model, prompt: Any, tokens: Any, logits: Any, theirs: str) -> None:
    """model_calls.py's rule: the largest error against the model in fp32 is at most twice that by torch."""
    exact = generated(copy.deepcopy(model).float(), theirs, prompt, tokens)[1]
    plain = generated(model, theirs, prompt, tokens)[1]
    assert (logits - exact).abs().max() <= 2 * (plain - exact).abs().max()


@pytest.mark.parametrize(
    ("model", "theirs"), [(llama, "sdpa"), (mistral, "sdpa"), (gemma2, "eager"), (gpt_oss, "eager")]
)
def test_two_calls_of_generate_launch_every_call(model: Callable[[], Model], theirs: str) -> None:
    model = model()
    for seed in range(2):
        with attune.count_calls() as counted:
            tokens, logits = generated(model, "attune", text(seed))
        assert (counted.stats.launched, counted.stats.fallbacks) == (LAYERS * TOKENS, {})
        hold(model, text(seed), tokens, logits, theirs)


def compiled_by_generate(mode: str) -> dict[str, Any]:
    """generate compiles the steps after the prompt when the cache is static."""
    config = transformers.CompileConfig(fullgraph=True, mode=mode)
    return {"cache_implementation": "static", "compile_config": config}


def test_two_compiled_calls_of_generate_launch_every_call() -> None:
    model = llama()
    for seed in range(2):
        with attune.count_calls() as counted:
            tokens, logits = generated(model, "attune", text(seed), **compiled_by_generate("default"))
        assert (counted.stats.launched, counted.stats.fallbacks) == (LAYERS * TOKENS, {})
        hold(model, text(seed), tokens, logits, "sdpa")


def test_generate_captures_and_replays_graphs() -> None:
    """The mode that generate takes by itself."""
    model = llama()
    for seed in range(2):
        with attune.count_calls() as counted:
            tokens, logits = generated(model, "attune", text(seed), **compiled_by_generate("reduce-overhead"))
        assert counted.stats.fallbacks == {}
        hold(model, text(seed), tokens, logits, "sdpa")


@pytest.mark.parametrize("model", [llama, mistral])
def test_a_compiled_model_launches_every_call(model: Callable[[], Model]) -> None:
    """With the cache that grows: the prompt is one graph, every later step another."""
    model = model()
    model.set_attn_implementation("attune")
    compiled = torch.compile(model, fullgraph=True, dynamic=True)
    steps = [text(0), *(text(seed, length=1) for seed in range(1, 6))]
    found = []
    for run in (model, compiled, compiled):
        cache, logits = None, []
        with torch.inference_mode(), attune.count_calls() as counted:
            for step in steps:
                out = run(input_ids=step, past_key_values=cache, use_cache=True, logits_to_keep=1)
                cache = out.past_key_values
                logits.append(out.logits.float())
        assert (counted.stats.launched, counted.stats.fallbacks) == (LAYERS * len(steps), {})
        found.append(torch.cat(logits))
    for logits in found[1:]:
        assert (logits - found[0]).norm() <= 2e-2 * found[0].norm()


def test_training_leaves_it_to_sdpa() -> None:
    gradients = []
    for implementation in ("sdpa", "attune"):
        model = mistral().train()
        model.set_attn_implementation(implementation)
        with attune.count_calls() as counted:
            model(input_ids=text(0), labels=text(0), use_cache=False).loss.backward()
        gradients.append(model.model.layers[0].self_attn.q_proj.weight.grad.float())
    assert (counted.stats.launched, counted.stats.fallbacks) == (0, {"grad": LAYERS})
    assert (gradients[1] - gradients[0]).norm() <= 2e-2 * gradients[0].norm()
