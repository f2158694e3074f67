"""The softmax scale of a recipe, for calls that ask for another one than 1/sqrt(head_dim)."""

from __future__ import annotations

import dataclasses
import math

from attune.errors import InvalidArgument
from attune.values import KernelArg, LaunchRecipe

_LEAST_RATIO = 1e-6  # far smaller ones would be denormal in fp32, and 0 times a maximum of -inf is NaN


def is_usual(scale: float | None, head_dim: int) -> bool:
    """Whether it is 1/sqrt(head_dim), to 1e-6. Both may be symbols of torch.compile's, which knows no math.isclose."""
    return scale is None or (scale > 0 and abs(scale * scale * head_dim - 1) < 2e-6)


def scaled(recipe: LaunchRecipe, head_dim: int, scale: float) -> LaunchRecipe:
    """`recipe`, computing with `scale`. Raises InvalidArgument, naming it, for one that its kernels do not compute."""
    usual = 1 / math.sqrt(head_dim)
    ratios = [arg.max_scale_ratio for launch in recipe.launches for arg in launch.args if arg.max_scale_ratio > 0]
    if not ratios:
        raise InvalidArgument(f"scale is {scale:g}; this kernel computes 1/sqrt(head_dim), {usual:g}, alone")
    if not _LEAST_RATIO <= scale / usual <= min(ratios):
        least, most = usual * _LEAST_RATIO, usual * min(ratios)
        raise InvalidArgument(f"scale is {scale:g}; this kernel computes {least:g} to {most:g}")

    def of_scale(arg: KernelArg) -> KernelArg:
        if arg.max_scale_ratio <= 0:
            return arg
        assert isinstance(arg.value, float)
        return dataclasses.replace(arg, value=arg.value * (scale / usual))

    launches = (dataclasses.replace(launch, args=tuple(map(of_scale, launch.args))) for launch in recipe.launches)
    return dataclasses.replace(recipe, launches=tuple(launches))
