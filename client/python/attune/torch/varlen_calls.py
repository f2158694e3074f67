"""SequenceCall of their own lengths: one behind the other, or with keys and values in pages."""

from __future__ import annotations

import abc
import functools
import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from attune.cuda.strides import Placement, Spacing
from attune.cuda.tensors import ALIGNMENT
from attune.errors import InvalidArgument
from attune.problem import LARGEST_PAGE, Problem
from attune.torch.call import AttentionCall, ExtraTensors
from attune.torch.fallback import Reason
from attune.torch.local_bias import LocalBias
from attune.torch.options import Options, integer, number_signature
from attune.torch.problem_of_tensors import DTYPES, check_strides, not_empty
from attune.torch.unfused import unfused_attention

_SIGNIFICANT_BITS = 3


@functools.lru_cache(maxsize=4096)
def rounded_up(length: int) -> int:
    """To three significant bits (..., 8, 10, 12, 14, 16, 20, ...), less than a quarter more: lengths that differ from
    call to call pose few problems."""
    length = max(1, length)
    zeros = max(0, length.bit_length() - _SIGNIFICANT_BITS)
    return -(-length >> zeros) << zeros


class SequenceCall(AttentionCall):
    """What both kinds share."""

    otherwise = "unfused attention in torch, which synchronizes with the device"

    bias: LocalBias | None  # each sequence's own
    dropout_p: float

    def refusal(self) -> tuple[Reason, str] | None:
        if self.bias is not None:
            return Reason.MASK, "alibi_slopes or a window that is not causal is given"
        if self.dropout_p != 0.0:
            return Reason.DROPOUT, f"dropout_p is {self.dropout_p}; only 0 is computed"
        if self.options.mask(same_lengths=False) is None:
            return Reason.WINDOW, f"window is {self.options.window}, top-left; only bottom-right ones are computed"
        return self.refusal_of_values()

    def placement(self, out: Tensor) -> Placement | None:
        of_scales = self.options.spacing_of_scales()
        tensors = self.query, self.key, self.value, out
        if not of_scales and all(tensor.is_contiguous() for tensor in tensors):
            return None
        check_strides(*tensors)
        return _spacing(self.query), _spacing(self.key), _spacing(self.value), _spacing(out), *of_scales

    def compute(self) -> tuple[Tensor, Tensor | None]:
        outs: list[Tensor] = []
        lses: list[Tensor] = []
        for b, (query, key, value) in enumerate(self.by_sequence()):
            mask = None if self.bias is None else self.bias.of_sequence(b)
            keys, values = self.in_dtype_of_query(_headed(key), _headed(value), b)
            rows, lse = unfused_attention(_headed(query), keys, values, self.options, mask, self.dropout_p)
            outs.append(rows[0].transpose(0, 1))
            lses.append(lse[0])
        return self.joined(outs, lses)

    @abc.abstractmethod
    def by_sequence(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        """[length, heads, head_dim] of each sequence. InvalidArgument for lengths that cannot be."""

    @abc.abstractmethod
    def joined(self, outs: list[Tensor], lses: list[Tensor]) -> tuple[Tensor, Tensor]:
        """[length, heads, head_dim] and [heads, length] of each sequence, as one."""

    def length_of(self, name: str, length: object) -> int:
        """`length`, or InvalidArgument where it is none."""
        found = integer(length)
        if found is None or found < 0:
            raise InvalidArgument(f"{self.what}: {name} is {length!r}; it must be a non-negative integer")
        return found

    def join_tokens(self, outs: list[Tensor], lses: list[Tensor]) -> tuple[Tensor, Tensor]:
        """[total_q, heads, head_dim] and [heads, total_q]; there may be no sequence."""
        none = self.query.new_empty(0, self.query.shape[1], self.value.shape[-1])
        no_lse = self.query.new_empty(self.query.shape[1], 0, dtype=torch.float32)
        return torch.cat(outs) if outs else none, torch.cat(lses, 1) if lses else no_lse

    def new_rows(self) -> Tensor:
        return torch.empty_like(self.query, memory_format=torch.contiguous_format)

    def empty_tokens(self) -> tuple[Tensor, Tensor | None]:
        total, heads, _ = self.query.shape
        lse = None
        if self.options.return_lse:
            lse = torch.empty((heads, total), dtype=torch.float32, device=self.query.device)
        return self.new_rows() if self.out is None else self.out, lse

    def problem_of(self, **fields: object) -> Problem:
        """The problem's fields that both kinds take from the same place, and `fields`."""
        return Problem(
            heads_q=self.query.shape[-2],
            heads_kv=self.key.shape[-2],
            head_dim=self.query.shape[-1],
            dtype=DTYPES[self.query.dtype],
            mask=self.options.mask(same_lengths=False) or "none",
            window=self.options.window or 0,
            softcap=self.options.softcap,
            lse=self.options.return_lse,
            sinks=self.options.sinks is not None,
            kv_dtype=self.kv_dtype(),
            **fields,  # type: ignore[arg-type]
        )

    def signature_of(self, kind: str, query: torch.Size, key: torch.Size, value: torch.Size, *more: object) -> tuple:
        return (
            *(kind, query, key, value),
            *(self.query.dtype, self.key.dtype, self.value.dtype),
            *(self.query.get_device(), self.key.get_device(), self.value.get_device()),
            *self.options.signature(),
            *(self.bias is None, self.dropout_p),
            *more,
        )


class VarlenCall(SequenceCall):
    """[total, heads, head_dim]; sequence b is rows cu_seqlens[b] to cu_seqlens[b + 1]."""

    what = "attune.attention_varlen"

    def __init__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        cu_seqlens_q: Tensor,
        cu_seqlens_k: Tensor,
        max_seqlen_q: int,
        max_seqlen_k: int,
        options: Options,
        bias: LocalBias | None = None,
        dropout_p: float = 0.0,
        out: Tensor | None = None,
    ) -> None:
        self.query, self.key, self.value, self.out = query, key, value, out
        self.options, self.bias, self.dropout_p = options, bias, dropout_p
        self.max_seqlen_q, self.max_seqlen_k = (
            self.length_of("max_seqlen_q", max_seqlen_q),
            self.length_of("max_seqlen_k", max_seqlen_k),
        )
        self.extra = ExtraTensors(options.sinks, cu_seqlens_q, cu_seqlens_k, **options.scales())

    def signature(self) -> tuple:
        query, key, value = self.query.shape[1:], self.key.shape[1:], self.value.shape[1:]
        bounds = (number_signature(self.extra.cu_seqlens_q), number_signature(self.extra.cu_seqlens_k))
        lengths = (rounded_up(self.max_seqlen_q), rounded_up(self.max_seqlen_k))
        as_many = self.key.shape[:1] == self.value.shape[:1]
        return self.signature_of("varlen", query, key, value, *bounds, *lengths, as_many)

    def check(self) -> None:
        self.check_values(3, 3, same_batch=False, shapes="[total, heads, head_dim], all of one head_dim")
        self.check_heads(self.query.shape[1], self.key.shape[1])
        cu_seqlens_q, cu_seqlens_k = self.extra.cu_seqlens_q, self.extra.cu_seqlens_k
        self.check_numbers("cu_seqlens_q", cu_seqlens_q, "[batch + 1]", (max(1, _length(cu_seqlens_q)),))
        self.check_numbers("cu_seqlens_k", cu_seqlens_k, "[batch + 1]", (_length(cu_seqlens_q),))
        self.check_sinks(self.query.shape[1])
        self.check_scales(max(0, _length(cu_seqlens_q) - 1), self.key.shape[1])

    def problem(self) -> Problem:
        return self.problem_of(
            batch=_length(self.extra.cu_seqlens_q) - 1,
            seq_q=rounded_up(self.max_seqlen_q),
            seq_kv=rounded_up(self.max_seqlen_k),
            varlen=True,
        )

    def outputs(self) -> tuple[Tensor, Tensor | None]:
        return self.empty_tokens()

    def by_sequence(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        cu_seqlens_q, cu_seqlens_k = self.extra.cu_seqlens_q, self.extra.cu_seqlens_k
        queries = _parts(self, "cu_seqlens_q", cu_seqlens_q, "query", self.query, "max_seqlen_q", self.max_seqlen_q)
        keys = _parts(self, "cu_seqlens_k", cu_seqlens_k, "key", self.key, "max_seqlen_k", self.max_seqlen_k)
        values = self.value.split([len(key) for key in keys]) if keys else ()
        return list(zip(queries, keys, values, strict=True))

    def joined(self, outs: list[Tensor], lses: list[Tensor]) -> tuple[Tensor, Tensor]:
        return self.join_tokens(outs, lses)


class PagedCall(SequenceCall):
    """key and value are [pages, page_size, heads_kv, head_dim]; query is [batch, seq_q, heads_q, head_dim] or, with
    cu_seqlens_q, [total, heads_q, head_dim]."""

    what = "attune.attention_paged"
    pads = False  # a cache is not copied

    def __init__(
        self,
        query: Tensor,
        key_pages: Tensor,
        value_pages: Tensor,
        block_table: Tensor,
        seqused_k: Tensor,
        cu_seqlens_q: Tensor | None,
        max_seqlen_q: int | None,
        options: Options,
        bias: LocalBias | None = None,
        dropout_p: float = 0.0,
        out: Tensor | None = None,
    ) -> None:
        self.query, self.key, self.value, self.out = query, key_pages, value_pages, out
        self.options, self.bias, self.dropout_p = options, bias, dropout_p
        self.max_seqlen_q = max_seqlen_q
        self.extra = ExtraTensors(options.sinks, cu_seqlens_q, None, seqused_k, block_table, **options.scales())
        if cu_seqlens_q is not None:
            self.max_seqlen_q = self.length_of("max_seqlen_q", max_seqlen_q)
        elif max_seqlen_q is not None:
            raise InvalidArgument(
                f"{self.what}: max_seqlen_q is {max_seqlen_q!r}; it needs cu_seqlens_q, which is not given"
            )

    def signature(self) -> tuple:
        cu_seqlens_q, seqused_k, block_table = self.extra.cu_seqlens_q, self.extra.seqused_k, self.extra.block_table
        query = self.query.shape if cu_seqlens_q is None else self.query.shape[1:]
        numbers = (number_signature(cu_seqlens_q), number_signature(seqused_k), number_signature(block_table))
        longest = None if self.max_seqlen_q is None else rounded_up(self.max_seqlen_q)
        return self.signature_of("paged", query, self.key.shape, self.value.shape, *numbers, longest)

    def check(self) -> None:
        cu_seqlens_q, seqused_k, block_table = self.extra.cu_seqlens_q, self.extra.seqused_k, self.extra.block_table
        tokens = cu_seqlens_q is not None
        of_query = "[total, heads_q, head_dim]" if tokens else "[batch, seq_q, heads_q, head_dim]"
        shapes = f"{of_query}, and [pages, page_size, heads_kv, head_dim] for key_pages and value_pages"
        self.check_values(3 if tokens else 4, 4, same_batch=False, shapes=shapes)
        self.check_heads(self.query.shape[-2], self.key.shape[2])
        page_size = self.key.shape[1]
        if not 1 <= page_size <= LARGEST_PAGE:
            raise InvalidArgument(f"{self.what}: key_pages has page_size {page_size}; it must be 1 to {LARGEST_PAGE}")
        if tokens:
            self.check_numbers("cu_seqlens_q", cu_seqlens_q, "[batch + 1]", (max(1, _length(cu_seqlens_q)),))
        batch = self._batch()
        self.check_numbers("seqused_k", seqused_k, "[batch]", (batch,))
        width = block_table.shape[1] if isinstance(block_table, Tensor) and block_table.dim() == 2 else 1
        self.check_numbers("block_table", block_table, "[batch, width]", (batch, width))
        self.check_sinks(self.query.shape[-2])
        self.check_scales(batch, self.key.shape[2])

    def problem(self) -> Problem:
        page_size = self.key.shape[1]
        seq_kv = not_empty("seq_kv", page_size * self.extra.block_table.shape[1])  # type: ignore[union-attr]
        lengths = {"batch": self._batch(), "seq_kv": seq_kv, "page_size": page_size}
        if self.extra.cu_seqlens_q is not None:
            return self.problem_of(**lengths, seq_q=rounded_up(self.max_seqlen_q or 0), varlen=True)
        # With one row, or one head, both layouts are the same memory.
        layout = "bhsd" if 1 in self.query.shape[1:3] else "bshd"
        return self.problem_of(**lengths, seq_q=self.query.shape[1], layout=layout)

    def check_memory(self) -> None:
        for name, pages in (("key_pages", self.key), ("value_pages", self.value)):
            if pages.data_ptr() % ALIGNMENT:  # no call could ever read this cache by a kernel
                raise InvalidArgument(
                    f"{self.what}: {name} is misaligned, at address {pages.data_ptr():#x}; it must be a multiple of "
                    f"{ALIGNMENT}"
                )

    def outputs(self) -> tuple[Tensor, Tensor | None]:
        if self.extra.cu_seqlens_q is not None:
            return self.empty_tokens()
        batch, rows, heads, _ = self.query.shape
        lse = None
        if self.options.return_lse:
            lse = torch.empty((batch, heads, rows), dtype=torch.float32, device=self.query.device)
        return self.new_rows() if self.out is None else self.out, lse

    def by_sequence(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        cu_seqlens_q, seqused_k, block_table = self.extra.cu_seqlens_q, self.extra.seqused_k, self.extra.block_table
        queries: Sequence[Tensor] = self.query.unbind()
        if cu_seqlens_q is not None:
            queries = _parts(
                self, "cu_seqlens_q", cu_seqlens_q, "query", self.query, "max_seqlen_q", self.max_seqlen_q or 0
            )
        found = []
        for b, (query, length, row) in enumerate(zip(queries, seqused_k.tolist(), block_table.tolist(), strict=True)):
            key, value = self._keys(b, length, row)
            found.append((query, key, value))
        return found

    def joined(self, outs: list[Tensor], lses: list[Tensor]) -> tuple[Tensor, Tensor]:
        if self.extra.cu_seqlens_q is not None:
            return self.join_tokens(outs, lses)
        if outs:
            return torch.stack(outs), torch.stack(lses)
        out, lse = self.query.new_empty(*self.query.shape[:-1], self.value.shape[-1]), self.query.shape[:-1]
        return out, self.query.new_empty(lse[0], lse[2], lse[1], dtype=torch.float32)

    def _batch(self) -> int:
        return self.query.shape[0] if self.extra.cu_seqlens_q is None else _length(self.extra.cu_seqlens_q) - 1

    def _keys(self, sequence: int, length: int, row: list[int]) -> tuple[Tensor, Tensor]:
        """[length, heads_kv, head_dim] of one sequence's keys and values."""
        page_size, pages = self.key.shape[1], self.key.shape[0]
        if not 0 <= length <= page_size * len(row):
            raise InvalidArgument(
                f"{self.what}: seqused_k[{sequence}] is {length}; block_table has room for 0 to {page_size * len(row)}"
            )
        used = row[: -(-length // page_size)]
        for index, page in enumerate(used):
            if not 0 <= page < pages:
                raise InvalidArgument(
                    f"{self.what}: block_table[{sequence}][{index}] is {page}; it must be 0 to {pages - 1}"
                )
        index = torch.tensor(used, dtype=torch.int64, device=self.query.device)
        return self.key[index].flatten(0, 1)[:length], self.value[index].flatten(0, 1)[:length]


def _parts(
    call: AttentionCall, name: str, bounds: Tensor, argument: str, tokens: Tensor, longest_name: str, longest: int
) -> list[Tensor]:
    """The rows of each sequence."""
    at = bounds.tolist()
    if at[0] != 0 or at[-1] != tokens.shape[0]:
        raise InvalidArgument(
            f"{call.what}: {name} goes from {at[0]} to {at[-1]}; {argument} has the rows 0 to {tokens.shape[0]}"
        )
    for b, (start, end) in enumerate(itertools.pairwise(at)):
        if not 0 <= end - start <= longest:
            raise InvalidArgument(
                f"{call.what}: {name} gives sequence {b} {end - start} tokens; {longest_name} allows 0 to {longest}"
            )
    return [tokens[start:end] for start, end in itertools.pairwise(at)]


def _length(bounds: object) -> int:
    """Of a vector; 0 of anything else, which its check then names."""
    return bounds.shape[0] if isinstance(bounds, Tensor) and bounds.dim() == 1 else 0


def _headed(rows: Tensor) -> Tensor:
    """[length, heads, head_dim] as [1, heads, length, head_dim]."""
    return rows.transpose(0, 1).unsqueeze(0)


def _spacing(tensor: Tensor) -> Spacing:
    """Of [total, heads, head_dim], of [batch, length, heads, head_dim] or of pages."""
    *batch, row, head, _ = tensor.stride()
    return (batch[0] if batch else 0), head, row
