"""attune's Python client: asks a server for the best attention kernel of a problem, has it tuned, and runs it.

    import attune

    with attune.Client("l4:7411") as client:
        answer = client.best("b2.h8.q512.d64.f16")

Names are imported when first used, so that importing attune costs next to nothing and needs neither torch nor numpy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attune.client import Client
    from attune.cuda import load
    from attune.display import plot_trials
    from attune.errors import (
        AttuneError,
        Cancelled,
        FailedPrecondition,
        InvalidArgument,
        NotFound,
        OperationFailed,
        Unreachable,
    )
    from attune.problem import Problem
    from attune.retry import RetryPolicy
    from attune.torch import attention, replace_sdpa
    from attune.values import Answer, Policy, Progress, Provenance, Strategy, Trial, Variant, Verdict

_HOMES = {
    "attune.client": ("Client",),
    "attune.cuda": ("load",),
    "attune.display": ("plot_trials",),
    "attune.errors": (
        "AttuneError",
        "Cancelled",
        "FailedPrecondition",
        "InvalidArgument",
        "NotFound",
        "OperationFailed",
        "Unreachable",
    ),
    "attune.problem": ("Problem",),
    "attune.retry": ("RetryPolicy",),
    "attune.torch": ("attention", "replace_sdpa"),
    "attune.values": ("Answer", "Policy", "Progress", "Provenance", "Strategy", "Trial", "Variant", "Verdict"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [  # noqa: RUF022 (as above)
    "Client",
    "load",
    "plot_trials",
    "AttuneError",
    "Cancelled",
    "FailedPrecondition",
    "InvalidArgument",
    "NotFound",
    "OperationFailed",
    "Unreachable",
    "Problem",
    "RetryPolicy",
    "attention",
    "replace_sdpa",
    "Answer",
    "Policy",
    "Progress",
    "Provenance",
    "Strategy",
    "Trial",
    "Variant",
    "Verdict",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is not None:
        value = getattr(importlib.import_module(home), name)
        globals()[name] = value
        return value
    if name in ("aio", "api", "values"):
        return importlib.import_module(f"attune.{name}")
    raise AttributeError(f"module 'attune' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
