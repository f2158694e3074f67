"""Decoders that generate with attune's kernels: which attention calls launch one, with which logits, after how many
questions to the service.

    python3 model_calls.py llama|window|paged [--cold] [--server unix:/path] [--out FILE] [--limit S]

llama   transformers' Llama under attune.replace_sdpa: grouped heads, a DynamicCache that grows by torch.cat
window  a decoder of attune's own, causal with a window and attention sinks, its cache sliced
paged   the same without a window, decoding over pages of 16 keys

Each has random weights and generates --tokens tokens after a prompt of --prompt, batch 2, fed with the same tokens in
every pass. attune.warm is called for the lengths to come, and every call is counted from the first; with --cold nothing
is, and the second pass is what counts. Start a new store for each. Logits are held to those of the same model in fp32:
their largest error may be twice that of the model computed by torch.

Answers that nobody tuned are accepted, and kernels run whether or not SDPA is faster: this is about what runs.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import pathlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import partial_report
import torch
from partial_report import Report, say
from torch import Tensor

import attune
from attune import Problem
from attune.torch.fallback import Stats, blocks

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import decoder
from definition import attention as defined

BATCH = 2
PAGE = 16
MOST_QUESTIONS = 12
WINDOW = 128
SHAPE = decoder.Shape(layers=4, hidden=2048, heads=32, kv_heads=8, vocabulary=4096, feed_forward=4096)


@dataclasses.dataclass
class Pass:
    """One generation."""

    logits: list[Tensor]  # [batch, vocabulary] a token
    stats: Stats
    seconds: float


class Model:
    """One of the three, on this host's GPU."""

    def __init__(self, prompt: int, tokens: int) -> None:
        self.prompt, self.tokens = prompt, tokens
        self.text = torch.randint(SHAPE.vocabulary, (BATCH, prompt), device="cuda")

    def problems(self) -> Iterable[Problem]:
        """That its passes pose."""
        raise NotImplementedError

    def step_of(self, *, exact: bool) -> Callable[[Tensor], Tensor]:
        """A new sequence: gives the logits after each piece of text. `exact`: in fp32, without attune."""
        raise NotImplementedError

    def generate(self, given: list[Tensor] | None, *, exact: bool = False, ours: bool = True) -> Pass:
        """Greedy, or fed with the choices of `given` logits."""
        step = self.step_of(exact=exact)
        torch.cuda.synchronize()
        start = time.perf_counter()
        with _counted(ours) as stats:
            logits = [step(self.text)]
            for index in range(self.tokens):
                logits.append(step((given or logits)[index].argmax(-1, keepdim=True)))
        torch.cuda.synchronize()
        return Pass(logits, stats, time.perf_counter() - start)

    def dense(self, seq_q: int, seq_kv: int, **options: Any) -> Problem:
        return Problem(
            batch=BATCH,
            heads_q=SHAPE.heads,
            heads_kv=SHAPE.kv_heads,
            seq_q=seq_q,
            seq_kv=seq_kv,
            head_dim=SHAPE.head_dim,
            dtype="bf16",
            **options,
        )

    def lengths(self) -> range:
        """Of the keys, while tokens are generated."""
        return range(self.prompt + 1, self.prompt + self.tokens + 1)


@contextlib.contextmanager
def _counted(ours: bool) -> Iterator[Stats]:
    """A block of attune.replace_sdpa, or one that only counts."""
    if ours:
        with attune.replace_sdpa() as replaced:
            yield replaced.stats
        return
    stats = Stats()
    blocks.stats.append(stats)
    try:
        yield stats
    finally:
        blocks.stats.remove(stats)


class Llama(Model):
    def __init__(self, prompt: int, tokens: int) -> None:
        super().__init__(prompt, tokens)
        import transformers

        config = transformers.LlamaConfig(
            hidden_size=SHAPE.hidden,
            intermediate_size=SHAPE.feed_forward,
            num_hidden_layers=SHAPE.layers,
            num_attention_heads=SHAPE.heads,
            num_key_value_heads=SHAPE.kv_heads,
            vocab_size=SHAPE.vocabulary,
            max_position_embeddings=4096,
            attn_implementation="sdpa",
        )
        torch.manual_seed(0)
        model = transformers.LlamaForCausalLM(config).cuda().bfloat16().eval()
        self._models = {False: model, True: copy.deepcopy(model).float()}

    def problems(self) -> Iterable[Problem]:
        # The projections are transposed views, and torch.cat makes dense keys and values of them.
        yield self.dense(self.prompt, self.prompt, mask="causal", layout="bshd")
        for length in self.lengths():
            yield self.dense(1, length)

    def step_of(self, *, exact: bool) -> Callable[[Tensor], Tensor]:
        model, cache = self._models[exact], None

        def step(text: Tensor) -> Tensor:
            nonlocal cache
            out = model(input_ids=text, past_key_values=cache, use_cache=True, logits_to_keep=1)
            cache = out.past_key_values
            return out.logits[:, -1].float()

        return step


class Own(Model):
    """attune's example decoder with another attention."""

    def __init__(self, prompt: int, tokens: int) -> None:
        super().__init__(prompt, tokens)
        torch.manual_seed(0)
        self.sinks = torch.randn(SHAPE.heads, device="cuda")
        model = decoder.Decoder(SHAPE).cuda().bfloat16().eval()
        self._models = {False: model, True: copy.deepcopy(model).float()}
        for exact, model in self._models.items():
            for layer in model.layers:
                attend = self.attend_exactly if exact else self.attend
                layer.attend = _attention_of(layer, attend)

    def step_of(self, *, exact: bool) -> Callable[[Tensor], Tensor]:
        model, start = self._models[exact], 0
        caches = self.new_caches(model)

        def step(text: Tensor) -> Tensor:
            nonlocal start
            self.length = start + text.shape[1]
            logits = model(text, caches, start)
            start = self.length
            return logits.float()

        return step

    def new_caches(self, model: decoder.Decoder) -> list[tuple[Tensor, Tensor]]:
        return model.new_caches(BATCH, self.capacity())

    def capacity(self) -> int:
        return ((self.prompt + self.tokens) // PAGE + 1) * PAGE

    def options(self) -> dict[str, Any]:
        return {"causal": "bottom-right"}

    def attend(self, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Of [batch, length, heads, head_dim]; keys and values are the whole cache."""
        keys, values = keys[:, : self.length], values[:, : self.length]
        swapped = (x.transpose(1, 2) for x in (q, keys, values))
        return attune.attention(*swapped, enable_gqa=True, **self.options()).transpose(1, 2)

    def attend_exactly(self, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        given = zip(q, keys[:, : self.length], values[:, : self.length], strict=True)
        return torch.stack([defined(*each, **self.options())[0] for each in given])


def _attention_of(layer: decoder.Layer, attend: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """Layer.attend with `attend` in the place of SDPA."""

    def attended(x: Tensor, rotation: tuple[Tensor, Tensor], cache: tuple[Tensor, Tensor], start: int) -> Tensor:
        shape, (batch, length, _) = layer.shape, x.shape
        heads = [shape.heads, shape.kv_heads, shape.kv_heads]
        q, k, v = layer.qkv(x).view(batch, length, -1, shape.head_dim).split(heads, dim=2)
        keys, values = cache
        keys[:, start : start + length] = decoder.rotate(k, rotation)
        values[:, start : start + length] = v
        out = attend(decoder.rotate(q, rotation), keys, values)
        return layer.out(out.reshape(batch, length, shape.hidden))

    return attended


class Window(Own):
    """Each row sees the last WINDOW keys and a sink of its head."""

    def options(self) -> dict[str, Any]:
        return {"causal": "bottom-right", "window": WINDOW, "sinks": self.sinks}

    def problems(self) -> Iterable[Problem]:
        of_all: dict[str, Any] = {"window": WINDOW, "mask": "window", "sinks": True}
        yield self.dense(self.prompt, self.prompt, layout="bshd", **of_all)
        for length in self.lengths():
            yield self.dense(1, length, **of_all)


class Paged(Own):
    """Tokens after the prompt read their keys from pages."""

    def __init__(self, prompt: int, tokens: int) -> None:
        super().__init__(prompt, tokens)
        width = self.capacity() // PAGE
        self._table = torch.arange(BATCH * width, dtype=torch.int32, device="cuda").view(BATCH, width)
        self._used = torch.zeros(BATCH, dtype=torch.int32, device="cuda")

    def attend(self, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        if q.shape[1] > 1:
            return super().attend(q, keys, values)
        pages = [cache.view(-1, PAGE, SHAPE.kv_heads, SHAPE.head_dim) for cache in (keys, values)]
        self._used.fill_(self.length)
        return attune.attention_paged(q, *pages, self._table, self._used, enable_gqa=True, **self.options())

    def problems(self) -> Iterable[Problem]:
        yield self.dense(self.prompt, self.prompt, mask="causal", layout="bshd")
        yield self.dense(1, self.capacity(), mask="causal-br", page_size=PAGE)


MODELS = {"llama": Llama, "window": Window, "paged": Paged}


def largest_error(found: Pass, exact: Pass) -> float:
    return max(float((a - b).abs().max()) for a, b in zip(found.logits, exact.logits, strict=True))


def described(one: Pass, tokens: int) -> dict[str, Any]:
    return {
        "launched": one.stats.launched,
        "by_torch": dict(one.stats.fallbacks),
        "seconds": round(one.seconds, 3),
        "ms_a_token": round(1e3 * one.seconds / (tokens + 1), 3),
        "questions": attune.state().questions,
        "followed": attune.state().followed,
    }


@torch.inference_mode()
def run(report: Report, model: Model, cold: bool) -> None:
    calls = SHAPE.layers * (1 + model.tokens)
    say(f"{type(model).__name__}: {calls} calls a pass")
    if not cold:
        problems = list(model.problems())
        start = time.monotonic()
        done = attune.warm(problems, timeout=max(1.0, report.left() - 20))
        state = attune.state()
        warmed = {
            "problems": len(problems),
            "answered": done,
            "seconds": round(time.monotonic() - start, 2),
            "questions": state.questions,
            "kernels": state.kernels,
            "without_kernel": dict(state.without_kernel),
        }
        report.add("warm", warmed)
        say(f"warm: {warmed}")
    passes = [model.generate(None)]
    report.add("calls_a_pass", calls)
    report.add("passes", [described(one, model.tokens) for one in passes])
    for _ in range(2 if cold else 1):
        passes.append(model.generate(passes[0].logits))
        report.add("passes", [described(one, model.tokens) for one in passes])
        say(f"pass: {report.found['passes'][-1]}")
    if report.left() <= 0:
        return
    exact = model.generate(passes[0].logits, exact=True, ours=False)
    attune.configure(attune.Client("unix:/nobody", deadline=0.1))  # torch computes
    plain = model.generate(passes[0].logits, ours=False)
    errors = {"attune": largest_error(passes[-1], exact), "torch": largest_error(plain, exact)}
    report.add("largest_error_of_logits", errors)
    report.add("pass_by_torch", described(plain, model.tokens))
    counted = passes[1] if cold else passes[0]
    report.add(
        "holds",
        {
            "every call launched": counted.stats.launched == calls,
            "questions": report.found["passes"][-1]["questions"] <= MOST_QUESTIONS,
            "logits": errors["attune"] <= 2 * errors["torch"],
        },
    )
    say(f"{report.found['holds']} {errors}")


def main() -> None:
    parser = partial_report.arguments(__doc__, limit=60.0)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--cold", action="store_true", help="without attune.warm")
    parser.add_argument("--prompt", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=512)
    given = parser.parse_args()
    report = Report(given)
    with attune.Client(given.server) as client:
        attune.configure(client, device=given.device, acceptable=partial_report.ANY_ANSWER, never_slower=False)
        run(report, MODELS[given.model](given.prompt, given.tokens), given.cold)
    report.end()


if __name__ == "__main__":
    main()
