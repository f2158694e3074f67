"""A Llama-shaped decoder with random weights, run by torch's SDPA and under attune.replace_sdpa().

    python3 examples/decoder.py --server l4:7411

Tunes two problems, the prefill and a decoding step of middle length, then generates the same tokens both ways and
prints one JSON object: tokens a second of both, how far the logits are apart, and what became of each call. A decoding
step's problem is another one at every token, because its key length is. Nobody tunes them all: the service answers
NEAREST, with a recipe for the very length asked about and the variant tuned for the nearest one; the report counts
those answers. Each length is asked about once, in the first pass; the timed passes find it answered.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import statistics
import sys
import time
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import attune

TOLERANCE = 1e-2  # of the logits' norm: what fp16 leaves of it through the layers
TIMED = 3  # passes whose median is reported
PASSES = 1 + TIMED


@dataclasses.dataclass(frozen=True)
class Shape:
    layers: int = 16
    hidden: int = 2048
    heads: int = 32
    kv_heads: int = 8
    vocabulary: int = 32000
    feed_forward: int = 5632

    @property
    def head_dim(self) -> int:
        return self.hidden // self.heads


class Layer(nn.Module):
    """Attention with grouped queries and rotary positions, then SwiGLU, each on the RMS norm of its input."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        kv_size = shape.kv_heads * shape.head_dim
        self.attention_norm = nn.RMSNorm(shape.hidden, eps=1e-5)
        self.feed_forward_norm = nn.RMSNorm(shape.hidden, eps=1e-5)
        self.qkv = nn.Linear(shape.hidden, shape.hidden + 2 * kv_size, bias=False)
        self.out = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.gate_up = nn.Linear(shape.hidden, 2 * shape.feed_forward, bias=False)
        self.down = nn.Linear(shape.feed_forward, shape.hidden, bias=False)

    def forward(self, x: Tensor, rotation: tuple[Tensor, Tensor], cache: tuple[Tensor, Tensor], start: int) -> Tensor:
        """x: [batch, length, hidden]; the cache's tensors: [batch, capacity, kv_heads, head_dim], filled to `start`."""
        x = x + self.attend(self.attention_norm(x), rotation, cache, start)
        gate, up = self.gate_up(self.feed_forward_norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)

    def attend(self, x: Tensor, rotation: tuple[Tensor, Tensor], cache: tuple[Tensor, Tensor], start: int) -> Tensor:
        batch, length, _ = x.shape
        shape, end = self.shape, start + x.shape[1]
        heads = [shape.heads, shape.kv_heads, shape.kv_heads]
        q, k, v = self.qkv(x).view(batch, length, -1, shape.head_dim).split(heads, dim=2)
        keys, values = cache
        keys[:, start:end] = rotate(k, rotation)
        values[:, start:end] = v
        # Transposed views of [batch, length, heads, head_dim]: nothing is copied.
        attended = F.scaled_dot_product_attention(
            rotate(q, rotation).transpose(1, 2),
            keys[:, :end].transpose(1, 2),
            values[:, :end].transpose(1, 2),
            is_causal=length > 1,
            enable_gqa=True,
        )
        return self.out(attended.transpose(1, 2).reshape(batch, length, shape.hidden))


class Decoder(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.hidden, eps=1e-5)
        self.head = nn.Linear(shape.hidden, shape.vocabulary, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=shape.hidden**-0.5)

    def new_caches(self, batch: int, capacity: int) -> list[tuple[Tensor, Tensor]]:
        size = (batch, capacity, self.shape.kv_heads, self.shape.head_dim)
        weight = self.head.weight
        return [(weight.new_zeros(size), weight.new_zeros(size)) for _ in self.layers]

    def forward(self, tokens: Tensor, caches: list[tuple[Tensor, Tensor]], start: int) -> Tensor:
        """Logits [batch, vocabulary] after the last of `tokens` [batch, length], which stand at `start` and after: one
        token, or a prompt at 0."""
        x = self.embedding(tokens)
        rotation = rotations(start, tokens.shape[1], self.shape.head_dim, x)
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer(x, rotation, cache, start)
        return self.head(self.norm(x[:, -1]))


def rotations(start: int, length: int, head_dim: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines [length, 1, head_dim / 2] of rotary positions, base 10,000."""
    frequencies = 10000 ** (-torch.arange(0, head_dim, 2, device=like.device) / head_dim)
    angles = torch.arange(start, start + length, device=like.device)[:, None, None] * frequencies
    return angles.cos().to(like.dtype), angles.sin().to(like.dtype)


def rotate(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """x: [batch, length, heads, head_dim], whose halves are the pairs' coordinates."""
    cos, sin = rotation
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


@dataclasses.dataclass
class Pass:
    """One generation."""

    logits: list[Tensor]  # [batch, vocabulary] a token
    prefill_s: float
    decode_s: float


@torch.inference_mode()
def generate(model: Decoder, prompt: Tensor, tokens: int, given: list[Tensor] | None = None) -> Pass:
    """`tokens` steps after `prompt` [batch, length], greedy; fed with the choices of `given` logits, if there are any,
    so that two ways to compute see the same tokens."""
    length = prompt.shape[1]
    caches = model.new_caches(prompt.shape[0], length + tokens)
    start = now()
    logits = [model(prompt, caches, 0)]
    prefilled = now()
    for step in range(tokens - 1):
        choice = (given or logits)[step].argmax(-1, keepdim=True)
        logits.append(model(choice, caches, length + step))
    return Pass(logits, prefilled - start, now() - prefilled)


def now() -> float:
    """Seconds, when the GPU has done all it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def problems(shape: Shape, prompt: int, tokens: int) -> list[str]:
    """The prefill, then every decoding step."""
    heads = f"b1.h{shape.heads}.kvh{shape.kv_heads}"
    rest = f"d{shape.head_dim}.f16"
    steps = [f"{heads}.q1.kv{prompt + step}.{rest}.bshd" for step in range(1, tokens)]
    return [f"{heads}.q{prompt}.{rest}.causal.bshd", *steps]


def rates(passes: list[Pass], prompt: int, tokens: int) -> dict[str, float]:
    """Tokens a second, of the median pass."""
    prefill = statistics.median(one.prefill_s for one in passes)
    decode = statistics.median(one.decode_s for one in passes)
    return {"prefill_tokens_per_s": round(prompt / prefill), "decode_tokens_per_s": round((tokens - 1) / decode, 1)}


def compare(
    client: attune.Client, device: str, shape: Shape, *, prompt: int, tokens: int, trials: int
) -> dict[str, Any]:
    """The report; `device` is the service's name for the GPU here, and `trials` go into each problem that is tuned,
    as far as they were not made before (0: none is tuned)."""
    asked = problems(shape, prompt, tokens)
    if trials > 0:
        for problem in (asked[0], asked[len(asked) // 2]):
            client.tune(problem, device=device, strategy="random", max_trials=trials, seed=1).result()
    # The report is of attune's kernels: by default calls that SDPA is faster at would be SDPA's.
    attune.configure(client, device=device, wait=60.0, never_slower=False)
    torch.manual_seed(0)
    model = Decoder(shape).half().cuda().eval()
    text = torch.randint(shape.vocabulary, (1, prompt), device="cuda")

    first = generate(model, text, tokens)
    plain = [generate(model, text, tokens, first.logits) for _ in range(TIMED)]
    with attune.replace_sdpa() as replaced:
        asking = generate(model, text, tokens, first.logits)
        tuned = [generate(model, text, tokens, first.logits) for _ in range(TIMED)]
    answers = [client.best(problem, device=device) for problem in asked]
    expected, found = torch.cat(plain[-1].logits).float(), torch.cat(tuned[-1].logits).float()
    return {
        "device": torch.cuda.get_device_name(),
        "shape": dataclasses.asdict(shape),
        "prompt": prompt,
        "tokens": tokens,
        "sdpa": rates(plain, prompt, tokens),
        "attune": {
            **rates(tuned, prompt, tokens),
            "first_pass_decode_tokens_per_s": rates([asking], prompt, tokens)["decode_tokens_per_s"],
            "launched": replaced.stats.launched,
            "fallbacks": dict(replaced.stats.fallbacks),
            "provenance": dict(collections.Counter(answer.provenance.name for answer in answers)),
            "prefill_variant": answers[0].variant.text,
        },
        "relative_error": ((found - expected).norm() / expected.norm()).item(),
        "tolerance": TOLERANCE,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", help="host:port, unix:/path or a name; default $ATTUNE_SERVER, or this host's")
    parser.add_argument("--device", default="cuda:0", help="the service's name for this host's GPU")
    parser.add_argument("--prompt", type=int, default=512, help="tokens of the prompt")
    parser.add_argument("--tokens", type=int, default=64, help="tokens to generate")
    parser.add_argument("--layers", type=int, default=Shape.layers)
    parser.add_argument("--trials", type=int, default=100, help="to tune each problem with; 0 leaves it as it is")
    arguments = parser.parse_args()
    with attune.Client(arguments.server) as client:
        shape = Shape(layers=arguments.layers)
        sizes = {"prompt": arguments.prompt, "tokens": arguments.tokens, "trials": arguments.trials}
        report = compare(client, arguments.device, shape, **sizes)
    print(json.dumps(report, indent=2))
    return 0 if report["relative_error"] < TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
