"""Why PyTorch has no kernel for a call: it says so in warnings, beside an error that does not."""

from __future__ import annotations

from collections.abc import Sequence

_HEADING = "not used because"  # "Flash attention kernel not used because:", then that backend's reasons
_TRIGGERED = "(Triggered internally"


def sdpa_reason(backend: str, warnings: Sequence[str], error: str) -> str:
    """In a line, the first reason given for `backend` ("flash", "cudnn", "efficient"); the error without one.

    The warnings go through all backends, the ones that were switched off included.
    """
    ours = False
    for warning in warnings:
        text = warning.partition(_TRIGGERED)[0].strip()
        if _HEADING in text:
            ours = backend in text.lower()
        elif ours and text and "runtime disabled" not in text:
            return text
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    return lines[0] if lines else "no reason given"
