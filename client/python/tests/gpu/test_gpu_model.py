"""The example model under attune.replace_sdpa."""

from __future__ import annotations

import pathlib
import sys

import pytest

import attune

torch = pytest.importorskip("torch")

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))


def test_a_decoder_gives_the_same_logits(client: attune.Client) -> None:
    import decoder

    shape = decoder.Shape(layers=2, hidden=256, heads=8, kv_heads=2, vocabulary=512, feed_forward=512)
    report = decoder.compare(client, "cuda:0", shape, prompt=128, tokens=8, trials=20)
    assert report["relative_error"] < decoder.TOLERANCE
    # A prefill and 7 decoding steps, of 2 layers each, in each of the passes.
    calls = (1 + 7) * 2 * decoder.PASSES
    assert (report["attune"]["launched"], report["attune"]["fallbacks"]) == (calls, {})
    assert set(report["attune"]["provenance"]) <= {"EXACT", "TIE", "NEAREST"}


def test_transformers_sdpa_is_replaced(client: attune.Client) -> None:
    transformers = pytest.importorskip("transformers")
    attune.configure(client, device="cuda:0", wait=120.0)
    config = transformers.LlamaConfig(
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        vocab_size=512,
        attn_implementation="sdpa",
    )
    model = transformers.LlamaForCausalLM(config).half().cuda().eval()
    tokens = torch.randint(512, (2, 256), generator=torch.Generator().manual_seed(0)).cuda()
    with torch.no_grad():
        expected = model(tokens, use_cache=False).logits
        with attune.replace_sdpa() as replaced:
            logits = model(tokens, use_cache=False).logits
    assert replaced.stats.launched + replaced.stats.fell_back == 2
    torch.testing.assert_close(logits, expected, rtol=1e-2, atol=1e-2)
