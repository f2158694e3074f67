"""The operators that torch.compile and torch.export keep in their graphs: attune::attention, attention_options,
attention_varlen and attention_paged. Those that may return a log-sum-exp always return two tensors, the second empty
unless it was asked for: an operator has one number of results.

Inputs that require grad are computed as attune.attention computes them: without a kernel, and differentiably."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.compiler import is_compiling

from attune.torch import varlen
from attune.torch.dispatch import attend, attend_options
from attune.torch.fallback import current_stats
from attune.torch.options import Options
from attune.torch.problem_of_tensors import is_usual_call, new_output

_library = torch.library.Library("attune", "FRAGMENT")
T = TypeVar("T")


def _operator(fake: Callable[..., Any]) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Makes a function attune's operator of its name; `fake` gives what it returns without elements. As
    torch.library.custom_op does it, but for what that puts around every call: as much again as the call itself."""

    def register(function: Callable[..., T]) -> Callable[..., T]:
        name = function.__name__
        schema = torch.library.infer_schema(function, mutates_args=())
        _library.define(name + schema, tags=(torch.Tag.pt2_compliant_tag,))
        _library.impl(name, _without_grad(function), "CompositeExplicitAutograd")
        _library.impl(name, _with_autograd(name, function), "Autograd")
        torch.library.register_fake(f"attune::{name}", fake, lib=_library)
        return function

    return register


def _without_grad(function: Callable[..., T]) -> Callable[..., T]:
    """For where torch records nothing: inputs that require grad are as others."""

    def compute(*given: Any) -> T:
        if not torch.is_grad_enabled():
            return function(*given)
        with torch.no_grad():
            return function(*given)

    return compute


def _with_autograd(name: str, function: Callable[..., T]) -> Callable[..., T]:
    """For where torch may record: what requires grad is computed without a kernel, which `function` sees to."""

    def compute(*given: Any) -> Any:
        tensors = [each for each in given if isinstance(each, Tensor)]
        needs_grad = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        if needs_grad or (is_usual_call(*tensors) and not is_compiling()):
            return function(*given)
        with torch._C._AutoDispatchBelowAutograd():  # subclasses, modes and transforms are asked next
            return getattr(torch.ops.attune, name).default(*given)

    return compute


@_operator(lambda query, *others: new_output(query))
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`attune.attention` without mask and dropout. Returns a tensor as `new_output` lays it out."""
    result = attend(current_stats(), query, key, value, None, 0.0, is_causal, scale, enable_gqa)
    # SDPA lays its result out as it likes; a graph was made for one layout.
    return _laid_out(result, query)


def _fake_attention_options(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    return_lse: bool,
    scale: float | None,
    enable_gqa: bool,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    return new_output(query), _fake_lse(query, query.shape[:-1], return_lse)


@_operator(_fake_attention_options)
def attention_options(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    return_lse: bool,
    scale: float | None,
    enable_gqa: bool,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    options = Options(causal, window, softcap, sinks, return_lse, scale, enable_gqa, k_scale, v_scale)
    result = attend_options(current_stats(), query, key, value, None, 0.0, options)
    out, lse = _both(result, query, return_lse)
    return _laid_out(out, query), lse.contiguous()


def _fake_attention_varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    return_lse: bool,
    scale: float | None,
    enable_gqa: bool,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    return _fake_rows(query, value), _fake_lse(query, (query.shape[1], query.shape[0]), return_lse)


@_operator(_fake_attention_varlen)
def attention_varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    return_lse: bool,
    scale: float | None,
    enable_gqa: bool,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    given = query, key, value, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k
    options = Options(causal, window, softcap, sinks, return_lse, scale, enable_gqa, k_scale, v_scale)
    return _run(varlen.attention_varlen, given, options)


def _fake_attention_paged(
    query: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    block_table: Tensor,
    seqused_k: Tensor,
    cu_seqlens_q: Tensor | None,
    max_seqlen_q: int | None,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    return_lse: bool,
    scale: float | None,
    enable_gqa: bool,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    return _fake_rows(query, value_pages), _fake_lse(query, _paged_rows(query), return_lse)


@_operator(_fake_attention_paged)
def attention_paged(
    query: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    block_table: Tensor,
    seqused_k: Tensor,
    cu_seqlens_q: Tensor | None,
    max_seqlen_q: int | None,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    return_lse: bool,
    scale: float | None,
    enable_gqa: bool,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    attend = functools.partial(varlen.attention_paged, cu_seqlens_q=cu_seqlens_q, max_seqlen_q=max_seqlen_q)
    options = Options(causal, window, softcap, sinks, return_lse, scale, enable_gqa, k_scale, v_scale)
    return _run(attend, (query, key_pages, value_pages, block_table, seqused_k), options)


def _run(attend: Callable[..., Any], given: tuple[Any, ...], options: Options) -> tuple[Tensor, Tensor]:
    out, lse = _both(attend(*given, **options._asdict()), given[0], options.return_lse)
    return out.contiguous(), lse.contiguous()


def _both(result: Any, query: Tensor, return_lse: bool) -> tuple[Tensor, Tensor]:
    """With a log-sum-exp that is empty unless it was asked for."""
    return result if return_lse else (result, query.new_empty(0, dtype=torch.float32))


def _laid_out(out: Tensor, query: Tensor) -> Tensor:
    """`out`, as `new_output` lays it out."""
    if query.is_contiguous() and out.stride() == query.stride():  # as nearly always
        return out
    like = new_output(query)
    return out if out.stride() == like.stride() else like.copy_(out)


def _fake_rows(query: Tensor, value: Tensor) -> Tensor:
    return query.new_empty((*query.shape[:-1], value.shape[-1]))


def _fake_lse(query: Tensor, rows: Sequence[int], return_lse: bool) -> Tensor:
    return query.new_empty(rows if return_lse else (0,), dtype=torch.float32)


def _paged_rows(query: Tensor) -> tuple[int, ...]:
    """[batch, seq_q, heads, head_dim] or [total_q, heads, head_dim]: the rows of its log-sum-exp."""
    return (*query.shape[:-3], query.shape[-2], query.shape[-3])
