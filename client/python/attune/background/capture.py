"""A kernel that is known to be faster in eager calls alone: CUDA graphs do not have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attune.background.reason import Reason, Unsuitable
from attune.cuda.driver import driver
from attune.errors import AttuneError

UNDECIDED = Unsuitable(
    Reason.UNDECIDED,
    "a CUDA graph is captured before the kernel was found to be faster than SDPA; call attune.warm before",
)


class Captured(AttuneError):
    """Such a kernel was to be recorded into a CUDA graph."""

    code = "FAILED_PRECONDITION"


def eager_only(launch: Callable[..., None]) -> Callable[..., None]:
    """`launch`, which raises Captured on a stream that is recorded into a CUDA graph."""
    is_capturing = driver().is_capturing

    def launch_eagerly(q: int, k: int, v: int, out: int, lse: int, stream: int, more: Any = ()) -> None:
        if is_capturing(stream):
            raise Captured(UNDECIDED.detail)
        launch(q, k, v, out, lse, stream, more)

    return launch_eagerly
