"""FlashAttention 4 (the package flash-attn-4): whether it is installed, and a problem as its call takes it."""

from __future__ import annotations

import importlib.metadata

from attune.problem import Problem

PACKAGE = "flash-attn-4"
NOT_INSTALLED = f"{PACKAGE} is not installed"


def installed_version() -> str | None:
    """None where the package is not installed."""
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return None


def refusal(problem: Problem) -> str:
    """Why the bench does not ask it for a problem; empty where it does."""
    if problem.mask == "causal" and problem.seq_q != problem.seq_kv:
        return "FlashAttention 4 has causal masks that end at the last key alone"
    if problem.lse:
        return "the bench asks FlashAttention 4 for no log-sum-exp"
    return ""


def call_options(problem: Problem) -> dict[str, object]:
    """What `flash_attn_func` is given beside Q, K and V. Its masks end at the last key, as causal-br does."""
    options: dict[str, object] = {"softcap": problem.softcap}
    if problem.mask == "window":
        options["window_size"] = (problem.window - 1, 0)
    elif problem.mask != "none":
        options["causal"] = True
    return options
