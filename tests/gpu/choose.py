"""Variants by what they must be: lists of variants name parameters, and the daemon says which variants there are."""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Chosen:
    text: str
    parameters: dict


def more(value):
    """A value of `must`: more than `value`."""
    return lambda other: other > value


def distance(parameters, like):
    """How far a variant is from what it should be like: powers of two, summed over the parameters."""
    return sum(abs(math.log2(1 + parameters[name]) - math.log2(1 + value)) for name, value in like.items())


def choose(variants, must, like=()):
    """Of `variants` (text, parameters) the one that has all of `must` and is nearest to `like`; None when none has it.

    A value of `must` may be a function of the parameter's value. Names that a family does not have are an error.
    """
    like = dict(like)
    for name in [*must, *like]:
        if any(name not in variant.parameters for variant in variants):
            raise ValueError(f"parameter '{name}' is not one of {', '.join(variants[0].parameters)}")

    def fits(parameters):
        return all(
            wanted(parameters[name]) if callable(wanted) else parameters[name] == wanted
            for name, wanted in must.items()
        )

    fitting = [variant for variant in variants if fits(variant.parameters)]
    return min(fitting, key=lambda variant: distance(variant.parameters, like), default=None)


def listed(client, problem, family, device=""):
    """The variants that the daemon offers, or why there are none."""
    from attune import AttuneError  # found by daemon.import_client

    try:
        space = client.preflight(problem, device=device, families=[family], variants=True)
    except AttuneError as error:
        return [], str(error)
    reasons = "; ".join(entry.reason for entry in space.families if entry.reason)
    variants = [Chosen(variant.text, variant.parameters) for variant in space.variants]
    return variants, "" if variants else reasons or f"no variant of {family}"
