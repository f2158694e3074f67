"""transformers' models with the attention implementation "attune" in torch.export."""

from __future__ import annotations

from typing import Any

import pytest
from computing_kernel import have_kernels_compute
from fake_service import Service
from transformers_models import LAYERS, close, llama, text

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from transformers.integrations.executorch import TorchExportableModuleForDecoderOnlyLM  # noqa: E402

from attune.torch import count_calls  # noqa: E402


@pytest.fixture
def computing(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    have_kernels_compute(service, monkeypatch)
    return service


def attune_model() -> Any:
    model = llama()
    model.set_attn_implementation("attune")
    return model


def test_a_prompt_is_exported_with_the_operator(computing: Service) -> None:
    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = attune_model()

        def forward(self, tokens: Any) -> Any:
            return self.model(input_ids=tokens, use_cache=True).logits

    model = Logits()
    with torch.no_grad():
        exported = torch.export.export(model, (text(9),), strict=False).module()
        expected = model(text(9, seed=1))
        with count_calls() as counted:
            close([exported(text(9, seed=1))], [expected])
    assert (counted.stats.launched, counted.stats.fallbacks) == (LAYERS, {})


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_padding_is_in_the_graph_and_not_counted(computing: Service) -> None:
    padding = torch.ones(2, 9, dtype=torch.int64)
    padding[0, :3] = 0

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = attune_model()

        def forward(self, tokens: Any, padding: Any) -> Any:
            return self.model(input_ids=tokens, attention_mask=padding, use_cache=False).logits

    model = Logits()
    with torch.no_grad():
        with count_calls() as counted:
            exported = torch.export.export(model, (text(9), padding), strict=False).module()
            found = exported(text(9), padding)
        close([found], [model(text(9), padding)])
    assert (counted.stats.launched, counted.stats.fallbacks) == (0, {})


@pytest.mark.filterwarnings("ignore:While compiling, we found certain side effects")
def test_a_static_cache_is_exported_with_the_operator(computing: Service) -> None:
    """As transformers exports decoders."""
    model = attune_model()
    model.generation_config.cache_implementation = "static"
    model.generation_config.use_cache = True
    tokens, found = [text(1, batch=1, seed=seed) for seed in range(3)], []
    with torch.no_grad():
        expected = model(input_ids=torch.cat(tokens, 1)).logits.unbind(1)
        exportable = TorchExportableModuleForDecoderOnlyLM(model, batch_size=1, max_cache_len=32)
        exported = exportable.export(input_ids=tokens[0], cache_position=torch.tensor([0])).module()
        with count_calls() as counted:
            for index, token in enumerate(tokens):
                found.append(exported(input_ids=token, cache_position=torch.tensor([index]))[:, 0])
    close(found, list(expected))
    assert (counted.stats.launched, counted.stats.fallbacks) == (LAYERS * len(tokens), {})
    assert "b1.h4.kvh2.q1.kv32.d16.f16.page32" in computing.problems
