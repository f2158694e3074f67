"""transformers' models with the attention implementation "attune": what is launched, and the logits."""

from __future__ import annotations

import copy
import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
from computing_kernel import have_kernels_compute
from fake_service import Service
from transformers_models import (
    LAYERS,
    SIZES,
    WINDOW,
    Model,
    close,
    gemma2,
    gpt_oss,
    gpt_oss_without_windows,
    llama,
    logits_of,
    made,
    mistral,
    text,
)

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import attune.transformers  # noqa: E402 (it registers the implementation)
from attune.torch import count_calls, replace_sdpa  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")


@pytest.fixture
def computing(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    have_kernels_compute(service, monkeypatch)
    return service


def test_two_calls_of_generate_launch_every_call(computing: Service) -> None:
    model, given = llama(), {"max_new_tokens": 4, "do_sample": False}
    with torch.no_grad():
        expected = [model.generate(text(9, seed=seed), **given) for seed in range(2)]
        model.set_attn_implementation("attune")
        with count_calls() as counted:
            found = [model.generate(text(9, seed=seed), **given) for seed in range(2)]
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.equal(ours, theirs)
    assert (counted.stats.launched, counted.stats.fallbacks) == (2 * LAYERS * 4, {})
    assert computing.problems == [
        "b2.h4.kvh2.q9.d16.f16.causal.bshd",
        "b2.h4.kvh2.q1.kv10.d16.f16",
        "b2.h4.kvh2.q1.kv11.d16.f16",
        "b2.h4.kvh2.q1.kv12.d16.f16",
    ]


def test_a_prompt_in_parts_is_causal_from_the_last_key(computing: Service) -> None:
    steps = text(7), text(5, seed=1), text(1, seed=2)
    expected = logits_of(llama(), "sdpa", *steps)
    with count_calls() as counted:
        close(logits_of(llama(), "attune", *steps), expected)
    assert (counted.stats.launched, counted.stats.fallbacks) == (3 * LAYERS, {})
    assert "b2.h4.kvh2.q5.kv12.d16.f16.causal-br" in computing.problems


@pytest.mark.parametrize(
    ("model", "masks"),
    [
        (mistral, {"b2.h4.kvh2.q9.d16.f16.window6.bshd", "b2.h4.kvh2.q1.kv6.d16.f16"}),
        (gemma2, {"b2.h4.kvh2.q9.d16.f16.window6.softcap5.bshd", "b2.h4.kvh2.q1.kv13.d16.f16.softcap5"}),
        (gpt_oss, {"b2.h4.kvh2.q9.d16.f16.window6.sinks", "b2.h4.kvh2.q1.kv13.d16.f16.sinks"}),
    ],
)
def test_windows_softcaps_and_sinks_are_the_kernels(
    computing: Service, model: Callable[[], Model], masks: set[str]
) -> None:
    steps = text(9), text(3, seed=1), text(1, seed=2)
    expected = logits_of(model(), "eager", *steps)
    with count_calls() as counted:
        close(logits_of(model(), "attune", *steps), expected)
    assert (counted.stats.launched, counted.stats.fallbacks) == (3 * LAYERS, {})
    assert masks <= set(computing.problems)


def test_padding_is_sdpas(computing: Service) -> None:
    prompt, padding = text(9), torch.ones(2, 9, dtype=torch.int64)
    padding[0, :3] = 0
    expected = logits_of(llama(), "sdpa", prompt, attention_mask=padding)
    with count_calls() as counted:
        close(logits_of(llama(), "attune", prompt, attention_mask=padding), expected)
    assert (counted.stats.launched, counted.stats.fallbacks) == (0, {"attn_mask": LAYERS})


def test_padding_that_hides_nothing_is_no_mask(computing: Service) -> None:
    for model in (llama, mistral):
        with count_calls() as counted:
            logits_of(model(), "attune", text(9), attention_mask=torch.ones(2, 9, dtype=torch.int64))
        assert (counted.stats.launched, counted.stats.fallbacks) == (LAYERS, {})


def test_padding_and_softcaps_are_computed_unfused(computing: Service) -> None:
    prompt, padding = text(9), torch.ones(2, 9, dtype=torch.int64)
    padding[0, :3] = 0
    expected = logits_of(gemma2(), "eager", prompt, attention_mask=padding)
    with count_calls() as counted:
        found = logits_of(gemma2(), "attune", prompt, attention_mask=padding)
    close([logits[:, 3:] for logits in found], [logits[:, 3:] for logits in expected])
    assert (counted.stats.launched, counted.stats.fallbacks) == (0, {"attn_mask": LAYERS})


def test_a_mask_of_the_callers_is_sdpas(computing: Service) -> None:
    mask = torch.rand(2, 1, 9, 9, generator=torch.Generator().manual_seed(3)) > 0.3
    mask |= torch.eye(9, dtype=torch.bool)
    expected = logits_of(llama(), "sdpa", text(9), attention_mask=mask)
    with count_calls() as counted:
        close(logits_of(llama(), "attune", text(9), attention_mask=mask), expected)
    assert counted.stats.fallbacks == {"attn_mask": LAYERS}


def test_packed_sequences_are_sdpas(computing: Service) -> None:
    positions = torch.tensor([[0, 1, 2, 3, 4, 0, 1, 2, 3]] * 2)
    found = []
    for implementation in ("sdpa", "attune"):
        model = llama()
        model.set_attn_implementation(implementation)
        with torch.no_grad(), count_calls() as counted:
            found.append(model(input_ids=text(9), position_ids=positions, use_cache=False).logits)
    close(found[1:], found[:1])
    assert counted.stats.fallbacks == {"attn_mask": LAYERS}


@pytest.mark.parametrize("chunk", [4, WINDOW])
def test_chunks_are_no_window(computing: Service, chunk: int) -> None:
    config = transformers.Llama4TextConfig(
        **SIZES, attention_chunk_size=chunk, num_local_experts=1, intermediate_size_mlp=64, use_qk_norm=False
    )
    config.sliding_window = WINDOW
    steps = text(9), text(3, seed=1)
    model = made(transformers.Llama4ForCausalLM, config)
    expected = logits_of(model, "sdpa", *steps)
    with count_calls() as counted:
        close(logits_of(model, "attune", *steps), expected)
    assert counted.stats.fallbacks["attn_mask"] > 0


def test_what_a_model_makes_of_a_mask_is_sdpas(computing: Service) -> None:
    mask = attune.transformers.attention_mask(1, 3, 8, q_offset=5)
    layer = torch.nn.Module()
    q, k = torch.randn(1, 2, 3, 16).half(), torch.randn(1, 2, 8, 16).half()
    with torch.no_grad(), count_calls() as counted:
        attune.transformers.attention_forward(layer, q, k, k, mask)
        assert (counted.stats.launched, counted.stats.fallbacks) == (1, {})
        hidden = mask & (torch.arange(8) != 2)
        found, _ = attune.transformers.attention_forward(layer, q, k, k, hidden)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, k, hidden).transpose(1, 2)
    close([found], [expected])
    assert (counted.stats.launched, counted.stats.fallbacks) == (1, {"attn_mask": 1})


def window_in_place(batch: Any, head: Any, row: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Of 6 keys, by operations that count as edits."""
    return (key <= row).logical_and_(key > row - 6)


def noted_mask(kind: str) -> torch.Tensor:
    """Of one sequence, 3 rows and 8 keys, computed by kernels as it is."""
    if kind == "static cache":
        return attune.transformers.attention_mask(1, 3, 8, q_offset=torch.tensor(5))
    if kind == "window":
        config, function = types.SimpleNamespace(sliding_window=6), window_in_place
        return attune.transformers.attention_mask(
            1, 3, 8, q_offset=5, local_size=6, mask_function=function, config=config
        )
    return attune.transformers.attention_mask(1, 3, 8, q_offset=5)


def hide_the_third_key(mask: torch.Tensor) -> torch.Tensor:
    return mask.masked_fill_(torch.arange(8) == 2, False)


EDITS = {
    "in place": hide_the_third_key,
    "in a view": lambda mask: (hide_the_third_key(mask[:, :, :]), mask)[1],
    "in place, then copied": lambda mask: copy.copy(hide_the_third_key(mask)),
    "in a deep copy": lambda mask: hide_the_third_key(copy.deepcopy(mask)),
    "in a copy that shares its memory": lambda mask: hide_the_third_key(copy.copy(mask)),
}


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("kind", ["prompt's part", "static cache", "window"])
@pytest.mark.parametrize("edit", EDITS)
def test_a_mask_that_was_edited_is_sdpas(computing: Service, mode: Callable[[], Any], kind: str, edit: str) -> None:
    q, k = torch.randn(1, 2, 3, 16).half(), torch.randn(1, 2, 8, 16).half()
    with mode(), count_calls() as counted:
        mask = noted_mask(kind)
        attune.transformers.attention_forward(torch.nn.Module(), q, k, k, mask)
        assert (counted.stats.launched, counted.stats.fallbacks) == (1, {})
        mask = EDITS[edit](mask)
        found, _ = attune.transformers.attention_forward(torch.nn.Module(), q, k, k, mask)
        assert not mask[..., 2].any()
        expected = torch.nn.functional.scaled_dot_product_attention(q, k, k, mask).transpose(1, 2)
    close([found], [expected])
    assert (counted.stats.launched, counted.stats.fallbacks) == (1, {"attn_mask": 1})


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_in_inference_mode_kernels_launch_as_elsewhere(computing: Service, cache: str) -> None:
    """Where tensors do not count their edits."""
    model = mistral() if cache == "dynamic" else llama()
    given = {"max_new_tokens": 4, "do_sample": False, "cache_implementation": cache, "disable_compile": True}
    found = []
    for mode in (torch.no_grad, torch.inference_mode):
        model.set_attn_implementation("attune")
        with mode(), count_calls() as counted:
            padding = torch.ones(2, 9, dtype=torch.int64)
            found.append(model.generate(text(9), attention_mask=padding, **given))
        assert (counted.stats.launched, counted.stats.fallbacks) == (4 * LAYERS, {})
    assert torch.equal(*found)


def test_a_mask_of_other_rows_is_sdpas(computing: Service) -> None:
    """Whose last row does not see the last key."""
    mask = attune.transformers.attention_mask(1, 3, 8, q_offset=2)
    layer = torch.nn.Module()
    q, k = torch.randn(1, 2, 3, 16).half(), torch.randn(1, 2, 8, 16).half()
    with torch.no_grad():
        found, _ = attune.transformers.attention_forward(layer, q, k, k, mask)
    close([found], [torch.nn.functional.scaled_dot_product_attention(q, k, k, mask).transpose(1, 2)])
    assert computing.launches == []


def test_a_mask_of_other_lengths_is_sdpas_to_refuse(computing: Service) -> None:
    mask = attune.transformers.attention_mask(1, 3, 8, q_offset=5)
    q, k = torch.randn(1, 2, 3, 16).half(), torch.randn(1, 2, 9, 16).half()
    with pytest.raises(RuntimeError, match="size of tensor"):
        attune.transformers.attention_forward(torch.nn.Module(), q, k, k, mask)


def test_training_is_sdpas(computing: Service) -> None:
    """With the mask of a window too, and the same gradients."""
    for kind in (llama, mistral):
        found = []
        for implementation in ("sdpa", "attune"):
            model = kind().float().train()
            model.set_attn_implementation(implementation)
            with count_calls() as counted:
                model(input_ids=text(9), labels=text(9), use_cache=False).loss.backward()
            found.append(model.model.layers[0].self_attn.q_proj.weight.grad)
        close(found[1:], found[:1])
        assert counted.stats.launched == 0
        assert counted.stats.fell_back == LAYERS


def test_encoders_are_not_causal(computing: Service) -> None:
    config = transformers.BertConfig(
        hidden_size=64, intermediate_size=64, num_hidden_layers=LAYERS, num_attention_heads=4, vocab_size=64
    )
    found = []
    for implementation in ("sdpa", "attune"):
        model = made(transformers.BertModel, config)
        model.set_attn_implementation(implementation)
        with torch.no_grad(), count_calls() as counted:
            found.append(model(input_ids=text(9)).last_hidden_state)
    close(found[1:], found[:1])
    assert counted.stats.launched == LAYERS
    assert computing.problems == ["b2.h4.q9.d16.f16.bshd"]


def test_an_empty_static_cache_is_filled_by_kernels(computing: Service) -> None:
    found = []
    for implementation in ("sdpa", "attune"):
        model = llama()
        model.set_attn_implementation(implementation)
        cache = transformers.StaticCache(model.config, max_cache_len=32)
        with torch.no_grad(), count_calls() as counted:
            found.append(model(input_ids=text(9), past_key_values=cache).logits)
    close(found[1:], found[:1])
    assert (counted.stats.launched, counted.stats.fallbacks) == (LAYERS, {})
    assert computing.problems == ["b2.h4.kvh2.q9.d16.f16.causal.bshd"]


@pytest.mark.parametrize("model", [llama, gpt_oss_without_windows])
def test_a_static_cache_is_read_by_kernels(computing: Service, model: Callable[[], Model]) -> None:
    """As pages, the prompt's parts and single tokens."""
    steps, found = [text(9), text(5, seed=1), text(1, seed=2), text(1, seed=3)], []
    for implementation in ("eager", "attune"):
        run = model()
        cache = transformers.StaticCache(run.config, max_cache_len=32)
        with count_calls() as counted:
            found.append(logits_of(run, implementation, *steps, cache=cache))
    close(found[1], found[0])
    assert (counted.stats.launched, counted.stats.fallbacks) == (4 * LAYERS, {})
    more = ".sinks" if model is gpt_oss_without_windows else ""
    assert computing.problems[1:] == [
        f"b2.h4.kvh2.q5.kv32.d16.f16.causal-br{more}.bshd.page32",
        f"b2.h4.kvh2.q1.kv32.d16.f16{more}.page32",
    ]


def test_padding_in_a_static_cache_is_sdpas(computing: Service) -> None:
    padding = torch.ones(2, 9, dtype=torch.int64)
    padding[0, :3] = 0
    given, found = {"max_new_tokens": 4, "do_sample": False, "cache_implementation": "static"}, []
    for implementation in ("sdpa", "attune"):
        model = llama()
        model.set_attn_implementation(implementation)
        with count_calls() as counted:
            found.append(model.generate(text(9), attention_mask=padding, **given))
    assert torch.equal(*found)
    assert counted.stats.fallbacks == {"attn_mask": 4 * LAYERS}


def test_without_a_kernel_a_static_cache_is_sdpas(computing: Service) -> None:
    computing.refuses_with = attune.NotFound("nobody tuned it")
    found = []
    for implementation in ("sdpa", "attune"):
        model = llama()
        cache = transformers.StaticCache(model.config, max_cache_len=32)
        with count_calls() as counted:
            found.append(logits_of(model, implementation, text(9), text(1), cache=cache))
    close(found[1], found[0])
    assert (counted.stats.launched, counted.stats.fell_back) == (0, 2 * LAYERS)


def test_inside_of_replace_sdpa_a_call_is_counted_once(computing: Service) -> None:
    padding = torch.ones(2, 9, dtype=torch.int64)
    padding[0, :3] = 0
    with replace_sdpa() as replaced:
        logits_of(llama(), "attune", text(9))
        logits_of(llama(), "attune", text(9), attention_mask=padding)
    assert (replaced.stats.launched, replaced.stats.fallbacks) == (LAYERS, {"attn_mask": LAYERS})


def test_inside_of_replace_sdpa_a_call_without_a_kernel_is_counted_once(computing: Service) -> None:
    computing.refuses_with = attune.NotFound("nobody tuned it")
    windows, static = mistral(), llama()
    cache = transformers.StaticCache(static.config, max_cache_len=32)
    with replace_sdpa() as replaced:
        logits_of(windows, "attune", text(9))
        logits_of(static, "attune", text(9), text(1), cache=cache)
    assert (replaced.stats.launched, replaced.stats.fallbacks) == (0, {"no_answer": 3 * LAYERS})


def test_coverage_finds_the_calls(computing: Service) -> None:
    model = mistral()
    model.set_attn_implementation("attune")
    with torch.no_grad():
        found = attune.coverage(model, text(9), device="l4")
    (call,) = found.calls
    assert (call.function, str(call.problem), call.count) == (
        "attune.transformers",
        "b2.h4.kvh2.q9.d16.f16.window6.bshd",
        LAYERS,
    )


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("attune.transformers")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "transformers.integrations.sdpa_attention", None)
    with pytest.raises(ImportError, match=r"transformers 5\.23 or later .*sdpa_attention"):
        importlib.import_module("attune.transformers")
