"""Attention of CuPy's arrays by the kernel that the server knows to be the fastest.

    python3 examples/cupy_attention.py --server l4:7411 --problem b2.h8.kvh2.q512.d64.f16.causal

Has the problem tuned where nobody has, computes it with random arrays and prints one JSON object: the
variant and the largest difference from attention computed by CuPy in fp32.
"""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

import cupy

import attune


def attention(kernel: attune.Kernel, q: Any, k: Any, v: Any) -> Any:
    """Of [batch, heads, length, head_dim] in C order, on CuPy's current stream. Nothing is copied, and nothing waits:
    what CuPy does next on that stream comes after it."""
    return kernel(q, k, v, cupy.empty_like(q), stream=cupy.cuda.get_current_stream())


def kernel_for(client: attune.Client, problem: str) -> attune.Kernel:
    """The best that was found; tunes the problem for a while first if nobody has."""
    tuned = ("EXACT", "TIE")  # else the server answers with a near problem's variant, or a guess
    try:
        answer = client.best(problem, acceptable=tuned, artifact=True)
    except attune.NotFound:
        client.tune(problem, max_time=30).result()
        answer = client.best(problem, acceptable=tuned, artifact=True)
    return attune.load(answer)


def in_fp32(q: Any, k: Any, v: Any, is_causal: bool) -> Any:
    k, v = (cupy.repeat(x.astype("float32"), q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    logits = q.astype("float32") @ k.swapaxes(2, 3) / math.sqrt(q.shape[3])
    if is_causal:
        logits = cupy.where(cupy.tri(q.shape[2], k.shape[2], dtype=bool), logits, -math.inf)
    weights = cupy.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server")
    parser.add_argument("--problem", default="b2.h8.kvh2.q512.d64.f16.causal", help="f16, causal or without a mask")
    given = parser.parse_args()
    problem = attune.Problem.parse(given.problem)
    shapes = [(problem.batch, problem.heads_q, problem.seq_q, problem.head_dim)]
    shapes += [(problem.batch, problem.heads_kv, problem.seq_kv, problem.head_dim)] * 2
    q, k, v = (cupy.random.standard_normal(shape, dtype="float32").astype("float16") for shape in shapes)
    with attune.Client(given.server) as client:
        kernel = kernel_for(client, given.problem)
        out = attention(kernel, q, k, v)
    error = abs(out - in_fp32(q, k, v, problem.mask == "causal")).max()
    print(json.dumps({"variant": str(kernel.answer.variant), "largest_error": float(error)}))


if __name__ == "__main__":
    main()
