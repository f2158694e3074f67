"""What a contestant is: somebody who computes attention, made ready for one problem."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

import torch
from attune.problem import Problem

from attune_bench.inputs import Inputs


class NotApplicable(Exception):
    """The contestant cannot run a problem; the message is the reason."""


class Skipped(Exception):
    """The contestant could run a problem, but at too high a cost; the message says at which."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A contestant made ready for one problem: compiled, loaded, called once."""

    run: Callable[[Inputs], torch.Tensor]  # O, [batch, heads_q, seq_q, head_dim]
    selected: Callable[[], AbstractContextManager] = field(default=nullcontext)  # within which `run` is called
    note: str = ""  # what a reader of its times must know


class Contestant(Protocol):
    """Somebody who computes attention."""

    name: str

    def prepare(self, problem: Problem, inputs: Inputs) -> Ready:
        """Ready for `problem`, tried once on `inputs`. Raises NotApplicable, Skipped, or what the library raises."""
        ...


def first_line(error: BaseException) -> str:
    """An error in a line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
