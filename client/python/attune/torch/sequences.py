"""Sequences of their own lengths: one behind the other, or with keys and values in pages."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from attune.errors import InvalidArgument
from attune.problem import Problem
from attune.torch.fallback import Reason
from attune.torch.form import Form
from attune.torch.options import Options, number_signature, whole
from attune.torch.plain import plain
from attune.torch.question import DTYPES, not_empty

_LARGEST_PAGE = 65536
_SIGNIFICANT_BITS = 3


def rounded_up(length: int) -> int:
    """To three significant bits (..., 8, 10, 12, 14, 16, 20, ...), less than a quarter more: lengths that differ from
    call to call pose few problems."""
    length = max(1, length)
    zeros = max(0, length.bit_length() - _SIGNIFICANT_BITS)
    return -(-length >> zeros) << zeros


class Sequences(Form):
    """What both forms share."""

    otherwise = "a plain computation that waits for the device"

    def refusal(self) -> tuple[Reason, str] | None:
        if self.options.mask(same_lengths=False) is None:
            return Reason.WINDOW, f"window is {self.options.window}, top-left; only bottom-right ones are computed"
        return self.refusal_of_values()

    def inputs(self) -> tuple[Tensor, Tensor, Tensor]:
        return _readable(self.query), _readable(self.key), _readable(self.value)

    def compute(self) -> tuple[Tensor, Tensor | None]:
        outs: list[Tensor] = []
        lses: list[Tensor] = []
        for query, key, value in self.by_sequence():
            rows, lse = plain(_headed(query), _headed(key), _headed(value), self.options)
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
        found = whole(length)
        if found is None or found < 0:
            raise InvalidArgument(f"{self.what}: {name} is {length!r}; allowed are whole numbers from 0 on")
        return found

    def join_tokens(self, outs: list[Tensor], lses: list[Tensor]) -> tuple[Tensor, Tensor]:
        """[total_q, heads, head_dim] and [heads, total_q]; there may be no sequence."""
        none = self.query.new_empty(0, self.query.shape[1], self.value.shape[-1])
        no_lse = self.query.new_empty(self.query.shape[1], 0, dtype=torch.float32)
        return torch.cat(outs) if outs else none, torch.cat(lses, 1) if lses else no_lse

    def empty_tokens(self) -> tuple[Tensor, Tensor | None]:
        total, heads, _ = self.query.shape
        lse = None
        if self.options.return_lse:
            lse = torch.empty((heads, total), dtype=torch.float32, device=self.query.device)
        return torch.empty_like(self.query, memory_format=torch.contiguous_format), lse

    def problem_of(self, **fields: object) -> Problem:
        """The problem's fields that all forms take from the same place, and `fields`."""
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
            **fields,  # type: ignore[arg-type]
        )

    def signature_of(self, kind: str, query: torch.Size, key: torch.Size, value: torch.Size, *more: object) -> tuple:
        return (
            *(kind, query, key, value, self.key.shape[:-1] == self.value.shape[:-1]),
            *(self.query.dtype, self.key.dtype, self.value.dtype),
            *(self.query.get_device(), self.key.get_device(), self.value.get_device()),
            *self.options.signature(),
            *more,
        )


class Varlen(Sequences):
    """[total, heads, head_dim]; sequence b is rows bounds[b] to bounds[b + 1]."""

    what = "attune.attention_varlen"

    def __init__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        q_bounds: Tensor,
        kv_bounds: Tensor,
        max_q: int,
        max_kv: int,
        options: Options,
    ) -> None:
        self.query, self.key, self.value = query, key, value
        self.options = options
        self.max_q, self.max_kv = self.length_of("max_q", max_q), self.length_of("max_kv", max_kv)
        self.more = (options.sinks, q_bounds, kv_bounds, None, None)

    def signature(self) -> tuple:
        query, key, value = self.query.shape[1:], self.key.shape[1:], self.value.shape[1:]
        bounds = (number_signature(self.more[1]), number_signature(self.more[2]))
        lengths = (rounded_up(self.max_q), rounded_up(self.max_kv))
        return self.signature_of("varlen", query, key, value, *bounds, *lengths)

    def check(self) -> None:
        self.check_values(3, 3, same_batch=False, shapes="[total, heads, head_dim], all of one head_dim")
        self.check_heads(self.query.shape[1], self.key.shape[1])
        _, q_bounds, kv_bounds, _, _ = self.more
        self.check_numbers("q_bounds", q_bounds, "[batch + 1]", (max(1, _length(q_bounds)),))
        self.check_numbers("kv_bounds", kv_bounds, "[batch + 1]", (_length(q_bounds),))
        self.check_sinks(self.query.shape[1])

    def problem(self) -> Problem:
        return self.problem_of(
            batch=_length(self.more[1]) - 1,
            seq_q=rounded_up(self.max_q),
            seq_kv=rounded_up(self.max_kv),
            varlen=True,
        )

    def outputs(self) -> tuple[Tensor, Tensor | None]:
        return self.empty_tokens()

    def by_sequence(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        _, q_bounds, kv_bounds, _, _ = self.more
        queries = _parts(self, "q_bounds", q_bounds, "query", self.query, "max_q", self.max_q)
        keys = _parts(self, "kv_bounds", kv_bounds, "key", self.key, "max_kv", self.max_kv)
        values = self.value.split([len(key) for key in keys]) if keys else ()
        return list(zip(queries, keys, values, strict=True))

    def joined(self, outs: list[Tensor], lses: list[Tensor]) -> tuple[Tensor, Tensor]:
        return self.join_tokens(outs, lses)


class Paged(Sequences):
    """key and value are [pages, page_size, heads_kv, head_dim]; query is [batch, seq_q, heads_q, head_dim] or, with
    bounds, [total, heads_q, head_dim]."""

    what = "attune.attention_paged"

    def __init__(
        self,
        query: Tensor,
        key_pages: Tensor,
        value_pages: Tensor,
        page_table: Tensor,
        kv_lengths: Tensor,
        q_bounds: Tensor | None,
        max_q: int | None,
        options: Options,
    ) -> None:
        self.query, self.key, self.value = query, key_pages, value_pages
        self.options = options
        self.max_q = max_q
        self.more = (options.sinks, q_bounds, None, kv_lengths, page_table)
        if q_bounds is not None:
            self.max_q = self.length_of("max_q", max_q)
        elif max_q is not None:
            raise InvalidArgument(f"{self.what}: max_q is {max_q!r}; it goes with q_bounds, which is not given")

    def signature(self) -> tuple:
        _, q_bounds, _, kv_lengths, page_table = self.more
        query = self.query.shape if q_bounds is None else self.query.shape[1:]
        numbers = (number_signature(q_bounds), number_signature(kv_lengths), number_signature(page_table))
        pages = (self.key.is_contiguous(), self.value.is_contiguous())
        longest = None if self.max_q is None else rounded_up(self.max_q)
        return self.signature_of("paged", query, self.key.shape, self.value.shape, *numbers, *pages, longest)

    def check(self) -> None:
        _, q_bounds, _, kv_lengths, page_table = self.more
        tokens = q_bounds is not None
        of_query = "[total, heads_q, head_dim]" if tokens else "[batch, seq_q, heads_q, head_dim]"
        shapes = f"{of_query} and twice [pages, page_size, heads_kv, head_dim]"
        self.check_values(3 if tokens else 4, 4, same_batch=False, shapes=shapes)
        self.check_heads(self.query.shape[-2], self.key.shape[2])
        page_size = self.key.shape[1]
        if not 1 <= page_size <= _LARGEST_PAGE:
            raise InvalidArgument(f"{self.what}: key_pages has page_size {page_size}; allowed are 1 to {_LARGEST_PAGE}")
        for name, pages in (("key_pages", self.key), ("value_pages", self.value)):
            if not pages.is_contiguous():
                raise InvalidArgument(f"{self.what}: {name} has strides {pages.stride()}; it must be contiguous")
        if tokens:
            self.check_numbers("q_bounds", q_bounds, "[batch + 1]", (max(1, _length(q_bounds)),))
        batch = self._batch()
        self.check_numbers("kv_lengths", kv_lengths, "[batch]", (batch,))
        width = page_table.shape[1] if isinstance(page_table, Tensor) and page_table.dim() == 2 else 1
        self.check_numbers("page_table", page_table, "[batch, width]", (batch, width))
        self.check_sinks(self.query.shape[-2])

    def problem(self) -> Problem:
        page_size = self.key.shape[1]
        seq_kv = not_empty("seq_kv", page_size * self.more[4].shape[1])  # type: ignore[union-attr]
        lengths = {"batch": self._batch(), "seq_kv": seq_kv, "page_size": page_size}
        if self.more[1] is not None:
            return self.problem_of(**lengths, seq_q=rounded_up(self.max_q or 0), varlen=True)
        # With one row, or one head, both layouts are the same memory.
        layout = "bhsd" if 1 in self.query.shape[1:3] else "bshd"
        return self.problem_of(**lengths, seq_q=self.query.shape[1], layout=layout)

    def check_memory(self) -> None:
        for name, pages in (("key_pages", self.key), ("value_pages", self.value)):
            if pages.data_ptr() % 16:  # not copied: it is a whole cache
                raise InvalidArgument(
                    f"{self.what}: {name} is at address {pages.data_ptr():#x}; it must be a multiple of 16"
                )

    def inputs(self) -> tuple[Tensor, Tensor, Tensor]:
        return _readable(self.query), self.key, self.value

    def outputs(self) -> tuple[Tensor, Tensor | None]:
        if self.more[1] is not None:
            return self.empty_tokens()
        batch, rows, heads, _ = self.query.shape
        lse = None
        if self.options.return_lse:
            lse = torch.empty((batch, heads, rows), dtype=torch.float32, device=self.query.device)
        return torch.empty_like(self.query, memory_format=torch.contiguous_format), lse

    def by_sequence(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        _, q_bounds, _, kv_lengths, page_table = self.more
        queries: Sequence[Tensor] = self.query.unbind()
        if q_bounds is not None:
            queries = _parts(self, "q_bounds", q_bounds, "query", self.query, "max_q", self.max_q or 0)
        found = []
        for b, (query, length, row) in enumerate(zip(queries, kv_lengths.tolist(), page_table.tolist(), strict=True)):
            key, value = self._keys(b, length, row)
            found.append((query, key, value))
        return found

    def joined(self, outs: list[Tensor], lses: list[Tensor]) -> tuple[Tensor, Tensor]:
        if self.more[1] is not None:
            return self.join_tokens(outs, lses)
        if outs:
            return torch.stack(outs), torch.stack(lses)
        out, lse = self.query.new_empty(*self.query.shape[:-1], self.value.shape[-1]), self.query.shape[:-1]
        return out, self.query.new_empty(lse[0], lse[2], lse[1], dtype=torch.float32)

    def _batch(self) -> int:
        return self.query.shape[0] if self.more[1] is None else _length(self.more[1]) - 1

    def _keys(self, sequence: int, length: int, row: list[int]) -> tuple[Tensor, Tensor]:
        """[length, heads_kv, head_dim] of one sequence's keys and values."""
        page_size, pages = self.key.shape[1], self.key.shape[0]
        if not 0 <= length <= page_size * len(row):
            raise InvalidArgument(
                f"{self.what}: kv_lengths[{sequence}] is {length}; page_table has room for 0 to {page_size * len(row)}"
            )
        used = row[: -(-length // page_size)]
        for index, page in enumerate(used):
            if not 0 <= page < pages:
                raise InvalidArgument(
                    f"{self.what}: page_table[{sequence}][{index}] is {page}; allowed are 0 to {pages - 1}"
                )
        index = torch.tensor(used, dtype=torch.int64, device=self.query.device)
        return self.key[index].flatten(0, 1)[:length], self.value[index].flatten(0, 1)[:length]


def _parts(
    form: Form, name: str, bounds: Tensor, argument: str, tokens: Tensor, longest_name: str, longest: int
) -> list[Tensor]:
    """The rows of each sequence."""
    at = bounds.tolist()
    if at[0] != 0 or at[-1] != tokens.shape[0]:
        raise InvalidArgument(
            f"{form.what}: {name} goes from {at[0]} to {at[-1]}; {argument} has the rows 0 to {tokens.shape[0]}"
        )
    for b, (start, end) in enumerate(itertools.pairwise(at)):
        if not 0 <= end - start <= longest:
            raise InvalidArgument(
                f"{form.what}: {name} gives sequence {b} {end - start} tokens; {longest_name} allows 0 to {longest}"
            )
    return [tokens[start:end] for start, end in itertools.pairwise(at)]


def _length(bounds: object) -> int:
    """Of a vector; 0 of anything else, which its check then names."""
    return bounds.shape[0] if isinstance(bounds, Tensor) and bounds.dim() == 1 else 0


def _headed(rows: Tensor) -> Tensor:
    """[length, heads, head_dim] as [1, heads, length, head_dim]."""
    return rows.transpose(0, 1).unsqueeze(0)


def _readable(tensor: Tensor) -> Tensor:
    """`tensor`, copied unless it is contiguous at an address that kernels can read from."""
    if tensor.is_contiguous() and tensor.data_ptr() % 16 == 0:
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)
