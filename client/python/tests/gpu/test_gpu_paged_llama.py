"""transformers' Llama decoding from a paged cache of 8 bits, by kernels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gpu_problems import DEVICE

import attune

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import paged_llama  # noqa: E402

from attune.background.settings import ACCEPTABLE  # noqa: E402


@pytest.fixture(autouse=True)
def configured(client_of_any: attune.Client) -> Iterator[None]:
    """Every call is attune's, tuned or not."""
    acceptable = (*ACCEPTABLE, attune.Provenance.HEURISTIC)
    attune.configure(client_of_any, device=DEVICE, acceptable=acceptable, wait=120.0, never_slower=False)
    yield
    attune.refresh()


@pytest.mark.filterwarnings("error::attune.torch.AttuneWarning")  # torch computes nothing
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kv_dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_logits_are_the_models_own_on_the_dequantised_cache(dtype: torch.dtype, kv_dtype: torch.dtype) -> None:
    found = paged_llama.errors(dtype, kv_dtype, "cuda", prompt=300, tokens=24)
    assert found.share <= 1
    assert found.attune <= 2 * found.plain
    assert attune.state().kernels > 0
