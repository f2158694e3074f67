"""Head dimensions that no kernel takes: the service is asked for the next one that kernels do take, and calls pad their
tensors to it."""

from __future__ import annotations

import dataclasses
import math

from attune.background.reason import Reason, Unsuitable
from attune.cuda import Kernel
from attune.cuda.strides import MULTIPLE
from attune.errors import InvalidArgument
from attune.problem import Problem


def padded_dim(head_dim: int) -> int:
    """The least head dimension that kernels take and that has room for this one: itself, or more."""
    return -(-head_dim // MULTIPLE) * MULTIPLE


def is_padded(problem: Problem) -> bool:
    """Whether calls of `problem` pad their tensors."""
    return padded_dim(problem.head_dim) != problem.head_dim


def padded(problem: Problem) -> Problem:
    """What the service is asked for when a call is `problem`."""
    return dataclasses.replace(problem, head_dim=padded_dim(problem.head_dim)) if is_padded(problem) else problem


def as_called(problem: Problem) -> Problem:
    """The problem that calls pose which are `problem`: what is padded is contiguous, however it lay before."""
    return dataclasses.replace(problem, layout="") if is_padded(problem) else problem


def scale_of(head_dim: int, scale: float | None) -> float:
    """The softmax scale that padded tensors are computed with, `head_dim` the one before."""
    return 1 / math.sqrt(head_dim) if scale is None else scale


def check_scale(problem: Problem, kernel: Kernel) -> None:
    """Raises Unsuitable where `kernel`, of the padded problem, does not compute the usual scale of `problem`."""
    try:
        kernel.scaled(scale_of(problem.head_dim, None))
    except InvalidArgument as error:
        why = f"head_dim is {problem.head_dim}, padded to {padded_dim(problem.head_dim)}: {error.message}"
        raise Unsuitable(Reason.SCALE, why, kernel.answer.domains) from None
