"""What the GPU tests have tuned, and on what."""

from __future__ import annotations

DEVICE = "cuda:0"
FAMILIES = ("attention_wmma", "attention_mma")
# What the tests ask about; every other shape they use is answered from the nearest of these.
PROBLEMS = (
    "b1.h1.q128.d64.f16",
    "b2.h8.kvh2.q256.d64.f16.causal",
    "b2.h4.q200.kv328.d64.bf16.causal-br.lse",
    "b2.h4.q256.d64.f16.bshd",
    "b1.h8.q1.kv4096.d64.f16",
    "b1.h4.q113.kv203.d128.f16.causal",
)
