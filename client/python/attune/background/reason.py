"""Why no kernel computes a call."""

from __future__ import annotations

import enum

from attune.values import Domain


class Reason(enum.Enum):
    """Its value is what is counted."""

    MASK = "attn_mask"
    WINDOW = "window"
    DROPOUT = "dropout"
    GRAD = "grad"  # attune's kernels are for inference
    AUTOCAST = "autocast"
    SUBCLASS = "subclass"  # of torch.Tensor, a torch.func transform, or a dispatch mode
    DEVICE = "device"
    DTYPE = "dtype"
    LAYOUT = "layout"  # nested and sparse tensors, and strides or addresses that a kernel cannot read
    SHAPE = "shape"
    SCALE = "scale"
    PENDING = "pending"  # the service has been asked in the background; later calls know what it says
    UNREACHABLE = "unreachable"
    NO_ANSWER = "no_answer"
    NOT_LOADED = "not_loaded"  # the service has an answer, but it cannot run here
    NOT_LAUNCHED = "not_launched"  # the driver refused a launch, or there was no memory for its scratch buffers
    SLOWER = "slower"  # than SDPA, as far as was timed
    CONTEST = "contest"  # SDPA's turn, while the kernel is timed against it
    UNDECIDED = "undecided"  # a CUDA graph is captured before the kernel was found to be faster than SDPA
    DETERMINISTIC = "deterministic"  # torch computed this shape before there was a kernel, and so goes on

    __hash__ = object.__hash__  # Enum's is Python's, and asked for in each call that is left to torch


class Unsuitable(Exception):
    """No kernel computes this; `detail` says why with the values at hand. `domains` have other problems that it is
    true of."""

    def __init__(self, reason: Reason, detail: str, domains: tuple[Domain, ...] = ()) -> None:
        super().__init__(detail)
        self.reason = reason
        self.counted_as = reason.value
        self.detail = detail
        self.domains = domains

    def again(self) -> Unsuitable:
        """The same to be kept, or raised in another call: one that was raised holds on to its frames, and so to
        tensors."""
        return Unsuitable(self.reason, self.detail, self.domains)
