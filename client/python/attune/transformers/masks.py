"""The masks that transformers' models have made for "attune": SDPA's, with a note where kernels compute what they say.

The note is an attribute of the mask, so that what a model makes of the mask (a slice, a sum) has none and is computed
by SDPA. It counts for that tensor, and until it is edited: torch counts edits in place, those of views included, as
autograd needs them. Compiled code cannot read that count, so that there a mask that has a note must not be edited.
Where SDPA needs no mask there is none here, and it means the same: causal if the layer is, from the first key."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.compiler import is_compiling
from transformers.masking_utils import causal_mask_function, sdpa_mask

from attune.problem import LARGEST_PAGE

_WINDOW, _PAGES, _NOTED = "attune_window", "attune_pages", "attune_noted"


class Visible(NamedTuple):
    """A row sees the keys up to its own, the last row up to the last key."""

    window: int | None = None  # and of those only the last so many
    # Of a static cache, whose length only the device knows: int32 [2, batch], the keys of each sequence and its number.
    pages: Tensor | None = None


def _outside_of_inference_mode(make: Callable[..., Tensor | None]) -> Callable[..., Tensor | None]:
    """A tensor made in inference mode does not count its edits; others do there too."""

    @functools.wraps(make)
    def made(*args: Any, **kwargs: Any) -> Tensor | None:
        if is_compiling() or not torch.is_inference_mode_enabled():
            return make(*args, **kwargs)
        with torch.inference_mode(False), torch.no_grad():
            return make(*args, **kwargs)

    return made


@_outside_of_inference_mode
def attention_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | Tensor = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Any] = causal_mask_function,
    attention_mask: Tensor | None = None,
    local_size: int | None = None,
    allow_is_causal_skip: bool = True,
    config: Any = None,
    **more: Any,
) -> Tensor | None:
    """As transformers' AttentionMaskInterface has it: what is computed where, to be attention_forward's mask."""
    mask = sdpa_mask(
        batch_size=batch_size,
        q_length=q_length,
        kv_length=kv_length,
        q_offset=q_offset,
        kv_offset=kv_offset,
        mask_function=mask_function,
        attention_mask=attention_mask,
        local_size=local_size,
        allow_is_causal_skip=allow_is_causal_skip,
        config=config,
        **more,
    )
    if mask is None:
        return None
    is_causal = local_size is None and mask_function is causal_mask_function
    if isinstance(q_offset, Tensor):
        if is_causal and kv_offset == 0 and kv_length <= LARGEST_PAGE:
            return _of_static_cache(mask, q_offset + q_length, attention_mask)
        return mask
    is_window = local_size is not None and allow_is_causal_skip and _is_sliding(config, local_size)
    ends_together = q_offset + q_length == kv_offset + kv_length
    if (is_window or is_causal) and ends_together and _is_whole(attention_mask, kv_offset, kv_length):
        return _noted(mask, _WINDOW, 0 if local_size is None or kv_length <= local_size else local_size)
    return mask


def visible(mask: Tensor, rows: int, keys: int) -> Visible | None:
    """What `mask` lets rows see, if it was made as above for so many and a kernel computes it; None otherwise."""
    if mask.shape[-2] != rows or mask.shape[-1] != keys:
        return None
    if not is_compiling() and (mask.is_inference() or getattr(mask, _NOTED, None) != _state(mask)):
        return None
    pages = getattr(mask, _PAGES, None)
    if pages is not None:
        return Visible(pages=pages)
    window = getattr(mask, _WINDOW, None)
    return None if window is None else Visible(window or None)


def _of_static_cache(mask: Tensor, length: Tensor, padding: Tensor | None) -> Tensor:
    """`mask` with its note where none of the first `length` keys is padding, which is waited for."""
    if padding is not None and (is_compiling() or not bool(padding.all() & (length <= padding.shape[1]))):
        return mask
    mask = mask.contiguous()  # as generate has it before it calls the model
    numbers = torch.arange(mask.shape[0], dtype=torch.int32, device=mask.device)
    return _noted(mask, _PAGES, torch.stack((length.to(torch.int32).expand_as(numbers), numbers)))


def _noted(mask: Tensor, name: str, note: int | Tensor) -> Tensor:
    if not is_compiling():
        if mask.is_inference():  # as where a mask function returns what was made before
            return mask
        setattr(mask, _NOTED, _state(mask))
    setattr(mask, name, note)
    return mask


def _state(mask: Tensor) -> tuple[int, int]:
    """Another after an edit in place, and of a copy, which may have the attributes too."""
    return id(mask), mask._version


def _is_sliding(config: Any, local_size: int) -> bool:
    """A mask function does not say what it computes: local_size may also be that of chunks."""
    return (
        getattr(config, "sliding_window", None) == local_size and getattr(config, "attention_chunk_size", None) is None
    )


def _is_whole(padding: Tensor | None, kv_offset: int, kv_length: int) -> bool:
    """Whether none of the keys is padding. Compiled code cannot read that."""
    if padding is None:
        return True
    if is_compiling() or padding.shape[-1] < kv_offset + kv_length:
        return False
    return bool(padding[:, kv_offset : kv_offset + kv_length].all())
