"""transformers' models with the attention implementation "attune" in torch.compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from computing_kernel import have_kernels_compute
from fake_service import Service
from transformers_models import LAYERS, close, gemma2, gpt_oss, llama, mistral, text

import attune
from attune.torch import count_calls

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")


@pytest.fixture
def computing(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    have_kernels_compute(service, monkeypatch)
    return service


@pytest.fixture(autouse=True)
def counters() -> Any:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield torch._dynamo.utils.counters["stats"]
    torch._dynamo.reset()


@pytest.mark.parametrize("model", [llama, mistral, gemma2, gpt_oss])
def test_a_model_is_one_graph(computing: Service, counters: Any, model: Callable[[], Any]) -> None:
    model = model()
    model.set_attn_implementation("attune")
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        expected = [model(input_ids=text(9, seed=seed)).logits for seed in range(2)]
        problems = list(computing.problems)
        with count_calls() as counted:
            found = [compiled(input_ids=text(9, seed=seed)).logits for seed in range(2)]
    close(found, expected)
    assert (counted.stats.launched, counted.stats.fallbacks) == (2 * LAYERS, {})
    assert computing.problems == problems
    assert counters["unique_graphs"] == 1


@pytest.mark.parametrize("model", [llama, mistral])
def test_any_length_is_one_graph(computing: Service, counters: Any, model: Callable[[], Any]) -> None:
    model = model()
    model.set_attn_implementation("attune")
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    with torch.no_grad(), count_calls() as counted:
        for length in (9, 11, 13):
            expected = model(input_ids=text(length)).logits
            close([compiled(input_ids=text(length)).logits], [expected])
    assert (counted.stats.launched, counted.stats.fallbacks) == (2 * 3 * LAYERS, {})
    assert counters["unique_graphs"] == 1


def test_decoding_with_a_growing_cache_launches(computing: Service) -> None:
    model = mistral()
    model.set_attn_implementation("attune")
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    steps = [text(9), *(text(1, seed=seed) for seed in range(3)), text(3)]
    logits = []
    for run in (model, compiled):
        cache, found = None, []
        with torch.no_grad(), count_calls() as counted:
            for step in steps:
                out = run(input_ids=step, past_key_values=cache, use_cache=True)
                cache = out.past_key_values
                found.append(out.logits)
        logits.append(found)
        assert (counted.stats.launched, counted.stats.fallbacks) == (len(steps) * LAYERS, {})
    close(logits[1], logits[0])


def test_generate_compiles_with_a_static_cache_and_launches(computing: Service) -> None:
    """What generate itself compiles: the steps after the prompt, with masks made outside."""
    model = llama()
    compiling = transformers.CompileConfig(fullgraph=True, backend="aot_eager", mode=None)
    compiling._compile_all_devices = True
    given = {"max_new_tokens": 4, "do_sample": False, "cache_implementation": "static"}
    with torch.no_grad():
        expected = [model.generate(text(9, seed=seed), disable_compile=True, **given) for seed in range(2)]
        model.set_attn_implementation("attune")
        with count_calls() as counted:
            found = [model.generate(text(9, seed=seed), compile_config=compiling, **given) for seed in range(2)]
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.equal(ours, theirs)
    assert (counted.stats.launched, counted.stats.fallbacks) == (2 * 4 * LAYERS, {})
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_without_a_cache_sequences_may_be_packed_and_are_sdpas(computing: Service) -> None:
    """transformers' rule: compiled code cannot read the positions, so that its mask has them."""
    model = llama()
    positions = torch.tensor([[0, 1, 2, 3, 4, 0, 1, 2, 3]] * 2)
    with torch.no_grad():
        expected = model(input_ids=text(9), position_ids=positions, use_cache=False).logits
        model.set_attn_implementation("attune")
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
        close([compiled(input_ids=text(9), position_ids=positions, use_cache=False).logits], [expected])
    assert computing.launches == []


def test_padding_is_in_the_graph_and_sdpas(computing: Service) -> None:
    model = llama()
    padding = torch.ones(2, 9, dtype=torch.int64)
    padding[0, :3] = 0
    with torch.no_grad():
        expected = model(input_ids=text(9), attention_mask=padding, use_cache=False).logits
        model.set_attn_implementation("attune")
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
        found = compiled(input_ids=text(9), attention_mask=padding, use_cache=False).logits
    close([found], [expected])
    assert computing.launches == []


def test_without_a_kernel_the_mask_of_a_window_is_sdpas(computing: Service) -> None:
    computing.refuses_with = attune.NotFound("nobody tuned it")
    model = mistral()
    with torch.no_grad(), count_calls() as counted:
        expected = model(input_ids=text(9)).logits
        model.set_attn_implementation("attune")
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
        close([compiled(input_ids=text(9)).logits], [expected])
    assert (counted.stats.launched, counted.stats.fell_back) == (0, LAYERS)


@pytest.mark.parametrize("model", [llama, mistral])
def test_training_is_sdpas(computing: Service, model: Callable[[], Any]) -> None:
    found = []
    for implementation in ("sdpa", "attune"):
        torch._dynamo.reset()
        trained = model().float().train()
        trained.set_attn_implementation(implementation)
        compiled = torch.compile(trained, fullgraph=True, backend="aot_eager")
        compiled(input_ids=text(9), labels=text(9), use_cache=False).loss.backward()
        found.append(trained.model.layers[0].self_attn.q_proj.weight.grad)
    close(found[1:], found[:1])
    assert computing.launches == []
