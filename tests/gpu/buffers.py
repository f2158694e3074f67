"""What a kernel of a problem reads and writes, as bytes, made without any library: enough to run it, not to check."""

import array
import random
import re
import struct
import sys

PATTERN = 65521  # values before inputs repeat: a prime, so that no two rows of a head are alike


class Problem:
    """The parts of the canonical text that sizes depend on; docs/problems.md has all of it."""

    def __init__(self, text):
        self.text = text
        given = {name: int(value) for name, value in re.findall(r"(?:^|\.)(kvh|kv|b|h|q|d|page)(\d+)(?=\.|$)", text)}
        words = text.split(".")
        self.batch, self.heads_q, self.seq_q, self.head_dim = (given[name] for name in "bhqd")
        self.heads_kv = given.get("kvh", self.heads_q)
        self.seq_kv = given.get("kv", self.seq_q)
        self.page_size = given.get("page", 0)
        self.kv_dtype = next((word[2:] for word in words if word in ("kve4m3", "kve5m2")), None)
        self.is_bf16, self.lse, self.sinks, self.varlen = (word in words for word in ("bf16", "lse", "sinks", "varlen"))

    def lengths(self, longest):
        """Of the sequences, when they differ: longest, ..., longest / batch."""
        return [-(-longest * (self.batch - b) // self.batch) for b in range(self.batch)]

    def q_lengths(self):
        return self.lengths(self.seq_q) if self.varlen else [self.seq_q] * self.batch

    def kv_lengths(self):
        return self.lengths(self.seq_kv) if self.varlen or self.page_size else [self.seq_kv] * self.batch


def elements(count, is_bf16, seed):
    """`count` values of N(0, 1) in 16 bits."""
    source = random.Random(seed)
    few = [source.gauss(0, 1) for _ in range(min(count, PATTERN))]
    if is_bf16:
        pattern = b"".join(struct.pack("<f", value)[2:] for value in few)
    else:
        pattern = struct.pack(f"<{len(few)}e", *few)
    return (pattern * (2 * count // max(1, len(pattern)) + 1))[: 2 * count]


def codes(count, kv_dtype, seed):
    """`count` elements of 8 bits, all finite ones alike."""
    source = random.Random(seed)
    largest = {"e4m3": 0x7E, "e5m2": 0x7B}[kv_dtype]
    few = [source.randint(0, largest) | source.getrandbits(1) << 7 for _ in range(min(count, PATTERN))]
    return (bytes(few) * (count // max(1, len(few)) + 1))[:count]


def scales(count, kv_dtype, seed):
    """With which codes() come to values of a few units."""
    source = random.Random(seed)
    largest = {"e4m3": 448, "e5m2": 57344}[kv_dtype]
    return struct.pack(f"<{count}f", *(source.uniform(2, 4) / largest for _ in range(count)))


def integers(values):
    assert array.array("i").itemsize == 4 and sys.byteorder == "little"
    return array.array("i", values).tobytes()


def bounds(lengths):
    """Where each sequence begins, and the end of the last."""
    sums = [0]
    for length in lengths:
        sums.append(sums[-1] + length)
    return sums


def page_table(problem, lengths):
    """(table, pages): every page of every sequence somewhere else; -1 behind a sequence's last page."""
    used = [-(-length // problem.page_size) for length in lengths]
    order = list(range(sum(used)))
    random.Random(1).shuffle(order)
    width = -(-problem.seq_kv // problem.page_size)
    table = []
    for pages in used:
        table += [order.pop() for _ in range(pages)] + [-1] * (width - pages)
    return table, max(1, sum(used))


def make(problem):
    """{role: bytes, or None for what the kernel writes}, {role: size}. Roles that the problem lacks are left out."""
    q_lengths, kv_lengths = problem.q_lengths(), problem.kv_lengths()
    rows_q = sum(q_lengths)
    rows_kv = sum(kv_lengths)
    inputs = {}
    if problem.page_size:
        table, pages = page_table(problem, kv_lengths)
        rows_kv = pages * problem.page_size
        inputs["PAGE_TABLE"], inputs["KV_LENGTHS"] = integers(table), integers(kv_lengths)
    if problem.varlen:
        inputs["Q_BOUNDS"] = integers(bounds(q_lengths))
        if not problem.page_size:
            inputs["KV_BOUNDS"] = integers(bounds(kv_lengths))
    if problem.sinks:
        inputs["SINKS"] = struct.pack(f"<{problem.heads_q}f", *(0.25 * head for head in range(problem.heads_q)))
    size_q, size_kv = rows_q * problem.heads_q * problem.head_dim, rows_kv * problem.heads_kv * problem.head_dim
    inputs["Q"] = elements(size_q, problem.is_bf16, 1)
    for seed, name in ((2, "K"), (3, "V")):
        if problem.kv_dtype:
            inputs[name] = codes(size_kv, problem.kv_dtype, seed)
            inputs[f"{name}_SCALE"] = scales(problem.batch * problem.heads_kv, problem.kv_dtype, seed + 2)
        else:
            inputs[name] = elements(size_kv, problem.is_bf16, seed)
    outputs = {"O": 2 * size_q}
    if problem.lse:
        outputs["LSE"] = 4 * rows_q * problem.heads_q
    return inputs, outputs


def has_nan(data, role, is_bf16):
    """Whether an output has a NaN (LSE may be -inf)."""
    values = array.array("I" if role == "LSE" else "H", data)
    mask = 0x7F800000 if role == "LSE" else 0x7F80 if is_bf16 else 0x7C00
    sign = 0x7FFFFFFF if role == "LSE" else 0x7FFF
    return any(value & sign > mask for value in values)
