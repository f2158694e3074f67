"""Which results are right: the daemon's rule (server/verify/compare.cc), held to it by tests/golden/tolerance.json."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

ALLOWED = {"f16": 1e-3, "bf16": 1e-2}  # absolute, and relative to the reference, of up to 2^17 elements
_UNIT_STEP = {"f16": 2.0**-10, "bf16": 2.0**-7}  # between neighbouring values around 1


@dataclass(frozen=True, slots=True)
class Errors:
    """Of one result against the fp32 reference."""

    wrong_elements: int  # outside the tolerance, or not finite
    elements: int
    max_abs_error: float  # inf when something is not finite
    max_reference: float
    plain_max_abs_error: float  # of the naive computation on the same inputs


def tail_factor(elements: int) -> float:
    """The chance of an error falls exponentially with its size, so the largest of N grows with ln N. 1 up to 2^17."""
    return 1 + math.log(max(1.0, elements / 2**17)) / 16


def allowed_of(dtype: str, elements: int) -> float:
    """Absolute, and relative to the reference, of each element of so many."""
    return ALLOWED[dtype] * tail_factor(elements)


def errors_of(dtype: str, output: Any, reference: Any, plain_max_abs_error: float) -> Errors:
    """Of an output and its fp32 reference, both fp32 arrays of torch or numpy and of one shape."""
    error, magnitude = abs(output - reference), abs(reference)
    allowed = allowed_of(dtype, math.prod(error.shape))
    right = int((error <= allowed + allowed * magnitude).sum())  # a comparison with NaN never holds
    largest = float(error.max())
    return Errors(
        wrong_elements=math.prod(error.shape) - right,
        elements=math.prod(error.shape),
        max_abs_error=largest if math.isfinite(largest) else math.inf,
        max_reference=float(magnitude.max()),
        plain_max_abs_error=plain_max_abs_error,
    )


def largest_allowed(dtype: str, errors: Errors) -> float:
    """Twice the naive computation's error, or twice one rounding step at the largest value where that is more."""
    step = 0.0
    if errors.max_reference > 0:
        step = 2.0 ** math.floor(math.log2(errors.max_reference)) * _UNIT_STEP[dtype]
    return 2 * max(errors.plain_max_abs_error, step)


def why_wrong(dtype: str, errors: Errors) -> str:
    """Empty when right; otherwise what is wrong, with the figures."""
    if not math.isfinite(errors.max_abs_error):
        return f"NaN or Inf in the result; {errors.wrong_elements} of {errors.elements} elements are wrong"
    if errors.wrong_elements:
        allowed = allowed_of(dtype, errors.elements)
        return (
            f"{errors.wrong_elements} of {errors.elements} elements are off by more than "
            f"{allowed:.3g} + {allowed:.3g} |reference|, the worst by {errors.max_abs_error:.3g}"
        )
    limit = largest_allowed(dtype, errors)
    if errors.max_abs_error > limit:
        return f"the largest error is {errors.max_abs_error:.3g}; allowed is {limit:.3g}, twice a naive computation's"
    return ""
