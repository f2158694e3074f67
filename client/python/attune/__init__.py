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
    from attune.client import Client as Client
    from attune.cuda import CudaError as CudaError
    from attune.cuda import Kernel as Kernel
    from attune.cuda import load as load
    from attune.errors import AttuneError as AttuneError
    from attune.errors import Cancelled as Cancelled
    from attune.errors import DataLoss as DataLoss
    from attune.errors import FailedPrecondition as FailedPrecondition
    from attune.errors import InvalidArgument as InvalidArgument
    from attune.errors import NotFound as NotFound
    from attune.errors import OperationFailed as OperationFailed
    from attune.errors import Unreachable as Unreachable
    from attune.plot import plot_trials as plot_trials
    from attune.problem import Problem as Problem
    from attune.retry import RetryPolicy as RetryPolicy
    from attune.torch import AttuneWarning as AttuneWarning
    from attune.torch import attention as attention
    from attune.torch import attention_paged as attention_paged
    from attune.torch import attention_varlen as attention_varlen
    from attune.torch import configure as configure
    from attune.torch import count_calls as count_calls
    from attune.torch import coverage as coverage
    from attune.torch import quantize_kv as quantize_kv
    from attune.torch import refresh as refresh
    from attune.torch import replace_sdpa as replace_sdpa
    from attune.torch import state as state
    from attune.torch import warm as warm
    from attune.values import Answer as Answer
    from attune.values import Effort as Effort
    from attune.values import Policy as Policy
    from attune.values import Progress as Progress
    from attune.values import Provenance as Provenance
    from attune.values import Strategy as Strategy
    from attune.values import Trial as Trial
    from attune.values import Variant as Variant
    from attune.values import Verdict as Verdict

_HOMES = {
    "Client": "attune.client",
    "CudaError": "attune.cuda",
    "Kernel": "attune.cuda",
    "load": "attune.cuda",
    "AttuneError": "attune.errors",
    "Cancelled": "attune.errors",
    "DataLoss": "attune.errors",
    "FailedPrecondition": "attune.errors",
    "InvalidArgument": "attune.errors",
    "NotFound": "attune.errors",
    "OperationFailed": "attune.errors",
    "Unreachable": "attune.errors",
    "plot_trials": "attune.plot",
    "Problem": "attune.problem",
    "RetryPolicy": "attune.retry",
    "AttuneWarning": "attune.torch",
    "attention": "attune.torch",
    "attention_paged": "attune.torch",
    "attention_varlen": "attune.torch",
    "configure": "attune.torch",
    "count_calls": "attune.torch",
    "coverage": "attune.torch",
    "quantize_kv": "attune.torch",
    "refresh": "attune.torch",
    "replace_sdpa": "attune.torch",
    "state": "attune.torch",
    "warm": "attune.torch",
    "Answer": "attune.values",
    "Effort": "attune.values",
    "Policy": "attune.values",
    "Progress": "attune.values",
    "Provenance": "attune.values",
    "Strategy": "attune.values",
    "Trial": "attune.values",
    "Variant": "attune.values",
    "Verdict": "attune.values",
}
_MODULES = ("aio", "api", "flash_attn", "values")

__all__ = [*_HOMES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(_module(name, _HOMES[name]), name)
    elif name in _MODULES:
        value = _module(name, f"attune.{name}")
    else:
        raise AttributeError(f"module 'attune' has no attribute '{name}'")
    globals()[name] = value
    return value


def _module(name: str, home: str) -> Any:
    """`home`, which has what `name` means."""
    try:
        return importlib.import_module(home)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            f"attune.{name} needs PyTorch: pip install 'attune-attention[torch]'", name="torch"
        ) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
