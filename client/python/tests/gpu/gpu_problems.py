"""What the GPU tests have tuned, and on what."""

from __future__ import annotations

from attune import Client, Problem

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

# Those of the options, of varlen and of pages. A shape that was not tuned is answered from one of the same head_dim,
# dtype, mask, layout, sinks, varlen and page size, compiled with softcap or without: so each such class is here once.
MORE_FAMILIES = ("attention_mma",)
DENSE_PROBLEMS = (
    "b2.h4.kvh2.q113.kv203.d64.f16.sinks.lse",
    "b2.h4.kvh2.q113.kv203.d64.f16.causal-br.lse",
    "b2.h4.kvh2.q113.kv203.d64.bf16.causal.softcap20.lse",
    "b2.h4.kvh2.q113.kv203.d64.f16.window37.softcap20.sinks.lse",
    "b2.h4.kvh2.q113.kv203.d64.f16.window37.bshd.lse",
)
VARLEN_PROBLEMS = (
    "b5.h4.kvh2.q256.d64.f16.varlen.lse",
    "b5.h4.kvh2.q256.d64.f16.causal.sinks.varlen.lse",
    "b5.h4.kvh2.q256.d64.f16.causal-br.softcap20.varlen.lse",
    "b5.h4.kvh2.q256.d64.bf16.window37.softcap20.sinks.varlen.lse",
)
PAGED_PROBLEMS = (
    "b4.h4.kvh2.q1.kv512.d64.f16.page16.lse",
    "b4.h4.kvh2.q5.kv300.d64.f16.causal-br.bshd.page1.lse",
    "b4.h4.kvh2.q5.kv301.d64.f16.causal-br.bshd.page7.lse",
    "b4.h4.kvh2.q5.kv304.d64.f16.causal-br.sinks.bshd.page16.lse",
    "b4.h4.kvh2.q5.kv384.d64.f16.causal.softcap20.bshd.page128.lse",
    "b4.h4.kvh2.q5.kv512.d64.bf16.window37.softcap20.sinks.bshd.page256.lse",
    "b4.h4.kvh2.q128.kv304.d64.f16.causal-br.varlen.page16.lse",
    "b4.h4.kvh2.q128.kv301.d64.bf16.window37.softcap20.sinks.varlen.page7.lse",
)


def tune_some(client: Client, problem: Problem | str, max_trials: int = 12) -> None:
    """Has a few variants of attention_mma tried: for lengths that no tuned problem is near enough to answer for."""
    tuning = client.tune(
        problem, device=DEVICE, families=MORE_FAMILIES, strategy="random", max_trials=max_trials, max_time=5, seed=1
    )
    tuning.result()
