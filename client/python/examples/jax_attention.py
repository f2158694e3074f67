"""Attention of JAX's arrays by the kernel that the server knows to be the fastest. The memory that the kernel writes is
CuPy's, which JAX takes over without a copy: JAX's own arrays never change.

    python3 examples/jax_attention.py --server l4:7411 --problem b2.h8.kvh2.q512.d64.f16.causal

Has the problem tuned where nobody has, computes it with random arrays and prints one JSON object: the
variant and the largest difference from jax.nn.dot_product_attention in fp32. Inside of jax.jit this does not work:
there, arrays have no memory yet.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import cupy
import jax
import jax.numpy as jnp
from cupy_attention import kernel_for

import attune


def attention(kernel: attune.Kernel, q: Any, k: Any, v: Any) -> Any:
    """Of [batch, heads, length, head_dim]. JAX waits for CuPy's stream, on the device, before it uses the result. It
    does not know that the kernel reads q, k and v: keep them until the result is there."""
    jax.block_until_ready((q, k, v))  # whose streams JAX does not name
    out = cupy.empty(q.shape, dtype="float16")
    kernel(q, k, v, out, stream=cupy.cuda.get_current_stream())
    return jax.dlpack.from_dlpack(out)


def in_fp32(q: Any, k: Any, v: Any, is_causal: bool) -> Any:
    q, k, v = (x.astype("float32").swapaxes(1, 2) for x in (q, k, v))
    with jax.default_matmul_precision("highest"):
        return jax.nn.dot_product_attention(q, k, v, is_causal=is_causal).swapaxes(1, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server")
    parser.add_argument("--problem", default="b2.h8.kvh2.q512.d64.f16.causal", help="f16, causal or without a mask")
    given = parser.parse_args()
    problem = attune.Problem.parse(given.problem)
    shapes = [(problem.batch, problem.heads_q, problem.seq_q, problem.head_dim)]
    shapes += [(problem.batch, problem.heads_kv, problem.seq_kv, problem.head_dim)] * 2
    keys = jax.random.split(jax.random.key(0), 3)
    q, k, v = (jax.random.normal(key, shape, "float16") for key, shape in zip(keys, shapes, strict=True))
    with attune.Client(given.server) as client:
        kernel = kernel_for(client, given.problem)
        out = attention(kernel, q, k, v)
    error = jnp.abs(out - in_fp32(q, k, v, problem.mask == "causal")).max()
    print(json.dumps({"variant": str(kernel.answer.variant), "largest_error": float(error)}))


if __name__ == "__main__":
    main()
