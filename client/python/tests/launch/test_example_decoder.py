"""The example model, on the CPU."""

from __future__ import annotations

import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))

import decoder  # noqa: E402

SHAPE = decoder.Shape(layers=2, hidden=64, heads=4, kv_heads=2, vocabulary=50, feed_forward=96)


def test_decoding_token_by_token_agrees_with_the_whole_text_at_once() -> None:
    torch.manual_seed(0)
    model = decoder.Decoder(SHAPE).eval()
    text = torch.randint(SHAPE.vocabulary, (1, 12))
    stepwise = decoder.generate(model, text, 5)
    for step, logits in enumerate(stepwise.logits):
        chosen = [earlier.argmax(-1, keepdim=True) for earlier in stepwise.logits[:step]]
        whole = decoder.generate(model, torch.cat([text, *chosen], dim=1), 1)
        torch.testing.assert_close(logits, whole.logits[0])


def test_its_problems_are_those_that_attention_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    from attune.torch.problem_of_tensors import layout_of, problem_of

    asked: list[str] = []

    def record(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, is_causal: bool, enable_gqa: bool):
        layout = layout_of(query, key, value)
        if layout:
            text = str(problem_of(query.half(), key, is_causal, layout))
            asked.extend([text] if text not in asked else [])
        return torch.zeros_like(query)

    monkeypatch.setattr(decoder.F, "scaled_dot_product_attention", record)
    decoder.generate(decoder.Decoder(SHAPE), torch.zeros(1, 12, dtype=torch.int64), 4)
    assert asked == [str(decoder.attune.Problem.parse(text)) for text in decoder.problems(SHAPE, 12, 4)]
