#!/usr/bin/env python3
"""How far a right kernel is off: the weights of a softmax, rounded to the dtype, and how rare large errors are.

A flash kernel takes exponents against a base that may lag behind the row's maximum by up to 2^8 (LAZY_RESCALE), so that
every weight is rounded, the largest one too. With large logits few keys share a row; what is then off is that of two or
three roundings times as many values. Rows of weights are drawn here, the values, which are normal, integrated over. Needs
numpy alone, and no GPU:

    python3 tests/gpu/rounding_tail.py --keys 1024 --rows 400000
"""

import argparse
import dataclasses
import math
import pathlib
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "client/bench"))
from attune_bench.tolerance import ALLOWED

SIGNIFICAND = {"f16": 11, "bf16": 8}  # bits, the leading one included
FACTORS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0)
LAG = 8  # powers of two that a base may lag behind
BATCH = 2048


@dataclasses.dataclass(frozen=True)
class Model:
    keys: int
    head_dim: int
    dtype: str
    deviation: float  # of Q's and K's elements: 3 with "large logits"


def rounded(values, dtype):
    """To the nearest of the dtype's numbers, of fp32 above its subnormal ones."""
    mantissa, exponent = numpy.frexp(values)
    steps = 2.0 ** SIGNIFICAND[dtype]
    return numpy.ldexp(numpy.rint(mantissa * steps) / steps, exponent)


def weights_and_errors(random, model):
    """Of rows: what each key weighs, and what its weight is off by once it and its sum have been rounded."""
    shape = (BATCH, model.keys)
    length = numpy.sqrt(random.chisquare(model.head_dim, (BATCH, 1)) / model.head_dim)
    logits = random.standard_normal(shape) * (model.deviation**2 * length)
    exponentials = numpy.exp2((logits - logits.max(1, keepdims=True)) * math.log2(math.e) + LAG * random.random((BATCH, 1)))
    weights = exponentials / exponentials.sum(1, keepdims=True)
    return weights, rounded(exponentials, model.dtype) / exponentials.sum(1, keepdims=True) - weights


def upper_tail(x):
    """Of the normal distribution. Abramowitz and Stegun, 26.2.17; x < 0 is taken as 0, which no large error has."""
    x = numpy.clip(x, 0, 30)
    k = 1 / (1 + 0.2316419 * x)
    series = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    return numpy.exp(-x * x / 2) / math.sqrt(2 * math.pi) * series


def exceeding(weights, errors, allowed, factors):
    """Of one row, for each of `factors`: the chance that an element is off by more than that many tolerances.

    With normal values the element and its error are two normal deviates that depend on each other."""
    deviation = math.sqrt((weights * weights).sum())
    common = (weights * errors).sum() / deviation**2
    rest = math.sqrt(max((errors * errors).sum() - (common * deviation) ** 2, 1e-24))
    z = numpy.linspace(-8, 8, 321)
    chances = numpy.exp(-z * z / 2) / numpy.exp(-z * z / 2).sum()
    element = deviation * z
    limit = allowed * (1 + numpy.abs(element)) * numpy.array(factors)[:, None]
    mean = common * element
    return ((upper_tail((limit - mean) / rest) + upper_tail((limit + mean) / rest)) * chances).sum(1)


def survival(model, rows, seed, factors=FACTORS):
    """For each of `factors`, the chance that an element is off by more than so many tolerances."""
    random = numpy.random.default_rng(seed)
    allowed = ALLOWED[model.dtype]
    total, drawn = numpy.zeros(len(factors)), 0
    while drawn < rows:
        weights, errors = weights_and_errors(random, model)
        # The rest adds nothing: half a tolerance is more than four deviations of theirs.
        for row in numpy.flatnonzero((errors * errors).sum(1) > (0.12 * allowed) ** 2):
            total += exceeding(weights[row], errors[row], allowed, factors)
        drawn += BATCH
    return total / drawn


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1024)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--dtype", choices=sorted(ALLOWED), default="f16")
    parser.add_argument("--deviation", type=float, default=3.0, help="of the elements of Q and K")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    model = Model(args.keys, args.head_dim, args.dtype, args.deviation)
    print("| tolerances | chance of an element | in 2^20 elements | in 2^25 | in 2^30 |")
    print("|---:|---:|---:|---:|---:|")
    for factor, chance in zip(FACTORS, survival(model, args.rows, args.seed)):
        print(f"| {factor:.1f} | {chance:.1e} | {chance * 2**20:.1e} | {chance * 2**25:.1e} | {chance * 2**30:.1e} |")


if __name__ == "__main__":
    main()
