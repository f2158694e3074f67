"""Sequences of lengths of their own for attention_hopper: packed one behind the other, or with their keys in pages."""

import dataclasses
import math

import expected
import torch


@dataclasses.dataclass
class Sequences:
    """Rows that belong to no sequence are NaN. Lengths are (queries, keys) of each; addresses as docs/problems.md."""

    lengths: list
    q: torch.Tensor  # varlen: [rows, heads, column]; else [batch, heads, rows, column]
    k: torch.Tensor  # [rows of all sequences or pages, heads, column]
    v: torch.Tensor
    q_bounds: torch.Tensor | None = None
    kv_bounds: torch.Tensor | None = None
    kv_lengths: torch.Tensor | None = None
    page_table: torch.Tensor | None = None
    key_rows: list = dataclasses.field(default_factory=list)  # of each sequence, in k and v


def _lengths(problem, generator):
    """The first is as long as can be; of many one has no queries and one no keys."""

    def draw(most):
        return int(torch.randint(1, most + 1, (1,), generator=generator))

    lengths = [(problem.seq_q, problem.seq_kv)]
    while len(lengths) < problem.batch:
        lengths.append((draw(problem.seq_q) if problem.varlen else problem.seq_q, draw(problem.seq_kv)))
    if problem.batch > 3:
        lengths[2] = (lengths[2][0], 0)
        if problem.varlen:
            lengths[1] = (0, lengths[1][1])
    return lengths


def _bounds(counts):
    return torch.tensor([0, *counts]).cumsum(0).to(torch.int32)


def make(problem, seed, dtype):
    p, generator = problem, torch.Generator().manual_seed(seed)
    lengths = _lengths(p, generator)

    def normal(*shape):
        return torch.randn(*shape, generator=generator).to(dtype)

    made = Sequences(lengths, *[None] * 3)
    if p.varlen:
        made.q_bounds = _bounds([queries for queries, _ in lengths])
        made.q = normal(int(made.q_bounds[-1]), p.heads_q, p.head_dim)
    else:
        bshd = p.layout == "bshd"
        shape = (p.batch, p.seq_q, p.heads_q) if bshd else (p.batch, p.heads_q, p.seq_q)
        made.q = normal(*shape, p.head_dim).cuda()
        made.q = made.q.transpose(1, 2) if bshd else made.q
    if p.page_size:
        width = -(-p.seq_kv // p.page_size)
        pages = torch.randperm(p.batch * width + 3, generator=generator)[: p.batch * width].reshape(p.batch, width)
        made.kv_lengths = torch.tensor([keys for _, keys in lengths], dtype=torch.int32)
        made.page_table = pages.to(torch.int32)
        rows = (p.batch * width + 3) * p.page_size
        for (_, keys), own in zip(lengths, pages):
            position = torch.arange(keys)
            made.key_rows.append(own[position // p.page_size] * p.page_size + position % p.page_size)
            made.page_table[len(made.key_rows) - 1, -(-keys // p.page_size) :] = 1 << 30
    else:
        made.kv_bounds = _bounds([keys for _, keys in lengths])
        rows = int(made.kv_bounds[-1])
        made.key_rows = [torch.arange(made.kv_bounds[i], made.kv_bounds[i + 1]) for i in range(p.batch)]
    for name in ("k", "v"):
        storage = torch.full((rows, p.heads_kv, p.head_dim), math.nan, dtype=dtype)
        for own in made.key_rows:
            storage[own] = normal(len(own), p.heads_kv, p.head_dim)
        setattr(made, name, storage)
    for field in dataclasses.fields(made):
        value = getattr(made, field.name)
        if isinstance(value, torch.Tensor):
            setattr(made, field.name, value.cuda())
    return made


def attend(problem, given, sinks, plain=False):
    """(O, LSE), a list of [heads, queries, ...] of each sequence; None where it has no queries."""
    results = []
    for i, (queries, keys) in enumerate(given.lengths):
        if queries == 0:
            results.append(None)
            continue
        if problem.varlen:
            q = given.q[given.q_bounds[i] : given.q_bounds[i] + queries].transpose(0, 1)[None]
        else:
            q = given.q[i : i + 1]
        k, v = (tensor[given.key_rows[i].cuda()].transpose(0, 1)[None] for tensor in (given.k, given.v))
        if keys == 0:
            o = torch.zeros(problem.heads_q, queries, problem.head_dim, device="cuda")
            sums = torch.full((problem.heads_q, queries), -math.inf, device="cuda")
            results.append((o, sums if sinks is None else sinks[:, None].expand(-1, queries)))
            continue
        own = dataclasses.replace(
            problem, batch=1, seq_q=queries, seq_kv=keys, varlen=False, page_size=0, layout="bhsd"
        )
        results.append(expected.attend(own, q, k, v, sinks, plain))
    return results


def of_sequence(problem, given, o, lse, i):
    """(O, LSE or None) [heads, queries, ...] of a sequence in a launch's results."""
    queries = given.lengths[i][0]
    if not problem.varlen:
        return o[i], None if lse is None else lse[i]
    begin = int(given.q_bounds[i])
    return o[begin : begin + queries].transpose(0, 1), None if lse is None else lse[:, begin : begin + queries]
