"""What a call asks for beyond softmax(Q K^T) V."""

from __future__ import annotations

import math
import operator
from typing import NamedTuple

from torch import Tensor
from torch.compiler import is_compiling

from attune.cuda.strides import Spacing, spacing_of_scale
from attune.errors import InvalidArgument

ALIGNMENTS = ("top-left", "bottom-right")


class Options(NamedTuple):
    """In the order in which operators take them."""

    causal: str | None = None  # one of ALIGNMENTS
    window: int | None = None  # keys a row sees, the last of them where `causal` ends
    softcap: float = 0.0  # 0: off
    sinks: Tensor | None = None  # [heads_q], fp32 or of 16 bits
    return_lse: bool = False
    scale: float | None = None  # None: 1 / sqrt(head_dim)
    enable_gqa: bool = False
    k_scale: Tensor | None = None  # fp32 [batch, heads_kv], [heads_kv] or []: of 8-bit keys
    v_scale: Tensor | None = None

    def signature(self) -> tuple:
        """All that a kernel depends on."""
        if not self.has_tensors():
            return self
        numbers = (number_signature(self.sinks), number_signature(self.k_scale), number_signature(self.v_scale))
        return (self.causal, self.window, self.softcap, self.return_lse, self.scale, self.enable_gqa, *numbers)

    def has_tensors(self) -> bool:
        return not (self.sinks is self.k_scale is self.v_scale is None)

    def has_scales(self) -> bool:
        return self.k_scale is not None or self.v_scale is not None

    def only_causal(self) -> bool:
        """Whether a causal mask is all that is asked for. No property: dynamo of PyTorch 2.6 cannot branch on one."""
        no_others = self.window is None and not self.softcap and self.sinks is None and not self.return_lse
        return no_others and self.k_scale is None and self.v_scale is None and self.causal is not None

    def is_sdpas(self) -> bool:
        """Whether SDPA has an argument for each of them, and for none more."""
        no_others = self.window is None and not self.softcap and self.sinks is None and not self.return_lse
        return no_others and self.k_scale is None and self.v_scale is None and self.causal in (None, "top-left")

    def mask(self, same_lengths: bool) -> str | None:
        """The problem's mask; None when no problem has such a one. `same_lengths`: of queries and keys, always."""
        if self.causal is None:
            return "none"
        if self.window is None:
            return "causal" if self.causal == "top-left" else "causal-br"
        return "window" if same_lengths or self.causal == "bottom-right" else None

    def scales(self) -> dict[str, Tensor | None]:
        return {"k_scale": self.k_scale, "v_scale": self.v_scale}

    def spacing_of_scales(self) -> tuple[Spacing, ...]:
        """Of both; none where there are none."""
        return tuple(spacing_of_scale(scale.stride()) for scale in (self.k_scale, self.v_scale) if scale is not None)

    def offset(self, q_length: int, kv_length: int) -> int:
        """Row i's last key is i + offset."""
        return kv_length - q_length if self.causal == "bottom-right" else 0


def options_of(
    is_causal: bool,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    return_lse: bool,
    scale: float | None,
    enable_gqa: bool,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
) -> Options:
    """Checked but for the tensors. Raises InvalidArgument, naming the argument, its value and what is allowed."""
    if isinstance(scale, Tensor):  # as SDPA takes it
        scale = float(scale)
    if causal is not None and causal not in ALIGNMENTS:
        raise InvalidArgument(f"causal is {causal!r}; it must be None, 'top-left' or 'bottom-right'")
    if is_causal and causal == "bottom-right":
        raise InvalidArgument("causal is 'bottom-right' and is_causal is True, which is 'top-left'; give one of them")
    if window is not None:
        given, window = window, integer(window)
        if window is None or window < 1:
            raise InvalidArgument(f"window is {given!r}; it must be None or a positive integer")
    if not 0 <= softcap < math.inf:
        raise InvalidArgument(f"softcap is {softcap!r}; it must be 0 (off) or positive")
    if is_causal:
        causal = "top-left"
    elif causal is None and window is not None:
        causal = "bottom-right"
    return Options(causal, window, float(softcap), sinks, bool(return_lse), scale, enable_gqa, k_scale, v_scale)


def integer(number: object) -> int | None:
    """An integer as an int, numpy's among them; None for anything else. Of torch's tensors none is: to read it may
    mean to wait for the device. torch.compile's symbols pass for ints, and are left as they are."""
    if isinstance(number, bool):
        return None
    if isinstance(number, int):
        return number
    if isinstance(number, Tensor) or is_compiling():
        return None
    try:
        return operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        return None


def number_signature(tensor: Tensor | None) -> tuple | None:
    """All that `check_numbers` looks at."""
    if not isinstance(tensor, Tensor):
        return tensor if tensor is None else (type(tensor),)
    return tensor.shape, tensor.dtype, tensor.get_device(), tensor.is_contiguous()
