"""FlashAttention's windows and ALiBi slopes: attune's own masks where they are causal, else a mask for torch,
made for as many rows at once as unfused attention takes."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from attune.errors import InvalidArgument
from attune.torch.options import integer


class LocalBias(NamedTuple):
    """What no kernel computes: windows that do not end at the diagonal, and slopes."""

    left: int  # row i sees the keys from i + keys - rows - left; -1: no limit
    right: int  # to i + keys - rows + right
    alibi_slopes: Tensor | None  # fp32 [heads] or [batch, heads]

    def of_sequence(self, sequence: int) -> LocalBias:
        slopes = self.alibi_slopes
        return self if slopes is None or slopes.dim() == 1 else self._replace(alibi_slopes=slopes[sequence])

    def mask(self, batch: slice, heads: slice, rows: slice, keys: slice, offset: int, device: torch.device) -> Tensor:
        """This part of SDPA's attn_mask, [1 or batch, 1 or heads, rows, keys]: bool, or fp32 that is added to the
        logits. Row i's diagonal is the key i + offset."""
        row = torch.arange(rows.start + offset, rows.stop + offset, device=device).unsqueeze(-1)
        distance = row - torch.arange(keys.start, keys.stop, device=device)  # 0 on the diagonal, positive before it
        visible = torch.ones_like(distance, dtype=torch.bool)
        if self.left >= 0:
            visible &= distance <= self.left
        if self.right >= 0:
            visible &= distance >= -self.right
        if self.alibi_slopes is None:
            return visible[None, None]
        slopes = self.alibi_slopes.float()
        slopes = slopes[None, heads] if slopes.dim() == 1 else slopes[batch, heads]
        bias = -slopes[..., None, None] * distance.abs()
        return bias.masked_fill(~visible, -math.inf)


def sides_of(what: str, window_size: object) -> tuple[int, int]:
    """(left, right) as given: two integers, or a tensor of two on the CPU."""
    given = window_size
    if isinstance(given, Tensor) and given.device.type == "cpu" and given.dim() == 1:
        given = given.tolist()
    try:
        left, right = (integer(side) for side in given)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        left = right = None
    if left is None or right is None or left < -1 or right < -1:
        raise InvalidArgument(f"{what}: window_size is {window_size!r}; it must be (left, right), each -1 or more")
    return left, right


def masks_of(
    what: str,
    sides: tuple[int, int],
    causal: bool,
    alibi_slopes: Tensor | None,
    heads: tuple[int, int],
    lengths: tuple[int, int],
) -> tuple[str | None, int | None, LocalBias | None]:
    """attune's `causal` and `window`, and what else hides keys or is added to the logits: then those two are None.

    heads: alibi_slopes' batch and heads; lengths: no sequence has more rows and keys."""
    left, right = sides
    rows, keys = lengths
    left = -1 if left >= keys - 1 else left
    right = 0 if causal else -1 if right >= max(1, rows - 1) else right
    if alibi_slopes is not None:
        if alibi_slopes.shape not in (heads[1:], heads):
            given = tuple(alibi_slopes.shape)
            raise InvalidArgument(f"{what}: alibi_slopes has shape {given}; it must be {heads[1:]} or {heads}")
        return None, None, LocalBias(left, right, alibi_slopes)
    if right == 0:
        return "bottom-right", None if left == -1 else left + 1, None
    return None, None, None if left == right == -1 else LocalBias(left, right, None)
