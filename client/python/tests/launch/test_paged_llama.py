"""transformers' Llama decoding from a paged cache of 8 bits, where no kernel computes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import paged_llama  # noqa: E402


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kv_dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_logits_are_the_models_own_on_the_dequantised_cache(dtype: torch.dtype, kv_dtype: torch.dtype) -> None:
    found = paged_llama.errors(dtype, kv_dtype, "cpu", prompt=37, tokens=6)
    assert found.share <= 1
    assert found.attune <= 2 * found.plain
