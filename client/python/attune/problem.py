"""A problem: attention forward at one shape. Its canonical text (docs/problems.md) is how people and files name it."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attune.errors import InvalidArgument

if TYPE_CHECKING:
    from google.protobuf.message import Message

DTYPES = ("f16", "bf16")
KV_DTYPES = ("e4m3", "e5m2")  # of K and V, when they are of 8 bits: torch.float8_e4m3fn, torch.float8_e5m2
MASKS = ("none", "causal", "causal-br", "window")
LAYOUTS = ("bhsd", "bshd")

_LARGEST = {
    "batch": 65536,
    "heads_q": 65536,
    "heads_kv": 65536,
    "seq_q": 1 << 24,
    "seq_kv": 1 << 24,
    "head_dim": 1024,
}
_MOST_ELEMENTS = 1e12
LARGEST_PAGE = 65536
_MOST_TOKENS = (1 << 31) - 1  # bounds and page tables count in 32 bits
_LARGEST_WINDOW = 1 << 24
_SOFTCAPS = (1e-6, 1e6)
_SOFTCAPS_TEXT = "0.000001 to 1000000"
_MOST_QUOTED = 64  # characters of a value that an error repeats


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Q and O are [batch, heads_q, seq_q, head_dim], K and V [batch, heads_kv, seq_kv, head_dim], in `layout`'s order.

    O = softmax(Q K^T / sqrt(head_dim) + mask) V; a row that sees no key is 0, its log-sum-exp -inf or its head's sink.
    With `varlen` and `page_size` seq_q and seq_kv are the longest that a sequence may be (docs/problems.md). Equal
    problems compare equal however they were written: with seq_q == seq_kv "causal-br" becomes "causal", unless
    sequences have lengths of their own.
    Raises InvalidArgument, naming the field, its value and what is allowed.
    """

    batch: int
    heads_q: int
    heads_kv: int = 0  # divides heads_q; 0: as heads_q
    seq_q: int
    seq_kv: int = 0  # 0: as seq_q
    head_dim: int
    dtype: str = "f16"  # of Q, K, V and O
    mask: str = "none"
    window: int = 0  # keys a row sees, with mask "window"; otherwise 0
    softcap: float = 0.0  # logits become softcap * tanh(logit / softcap); 0 is off
    layout: str = ""  # "": bhsd, or with varlen bshd, which is then the only one
    lse: bool = False  # also return each row's natural log-sum-exp: fp32 [batch, heads_q, seq_q]
    sinks: bool = False  # one more logit for every query head, which takes weight and has no value
    varlen: bool = False  # sequences of their own lengths, one behind the other
    page_size: int = 0  # of K and V, which are found through a table; 0: not paged
    kv_dtype: str = ""  # of K and V, when they are of 8 bits and have scales: e4m3, e5m2; "": as dtype

    def __post_init__(self) -> None:
        if self.heads_kv == 0:
            object.__setattr__(self, "heads_kv", self.heads_q)
        if self.seq_kv == 0:
            object.__setattr__(self, "seq_kv", self.seq_q)
        if self.layout == "":
            object.__setattr__(self, "layout", "bshd" if self.varlen else "bhsd")
        object.__setattr__(self, "softcap", float(self.softcap))
        if self.kv_dtype == self.dtype:
            object.__setattr__(self, "kv_dtype", "")
        _check(self)
        # Its text has six significant digits, and one text is one problem.
        object.__setattr__(self, "softcap", float(f"{self.softcap:g}"))
        if self.mask == "causal-br" and self.seq_q == self.seq_kv and not self.has_own_lengths:
            object.__setattr__(self, "mask", "causal")

    @property
    def has_own_lengths(self) -> bool:
        """Whether each sequence has a length of its own, given with each call."""
        return self.varlen or self.page_size > 0

    @staticmethod
    def parse(text: str) -> Problem:
        """The problem that `text` names, canonical or any other spelling of it; InvalidArgument names the part."""
        return _parse(text)

    @staticmethod
    def of(problem: Problem | str) -> Problem:
        """`problem` itself, or the one its text names."""
        if isinstance(problem, Problem):
            return problem
        if not isinstance(problem, str):
            raise _invalid(f"problem is {problem!r}; it must be a Problem or its text, as in b2.h8.q512.d64.f16.causal")
        return _parse(problem)

    @staticmethod
    def from_message(message: Message) -> Problem:
        """From an attune.v1.Problem; unset dtype, mask and layout mean f16, none and bhsd (with varlen, bshd)."""
        return Problem(
            batch=message.batch,
            heads_q=message.heads_q,
            heads_kv=message.heads_kv,
            seq_q=message.seq_q,
            seq_kv=message.seq_kv,
            head_dim=message.head_dim,
            dtype=_word("dtype", DTYPES, message.dtype),
            mask=_word("mask", MASKS, message.mask),
            window=message.window,
            softcap=message.softcap,
            layout=_word("layout", LAYOUTS, message.layout) if message.layout else "",
            lse=message.lse,
            sinks=message.sinks,
            varlen=message.varlen,
            page_size=message.page_size,
            kv_dtype=_word("kv_dtype", DTYPES + KV_DTYPES, message.kv_dtype) if message.kv_dtype else "",
        )

    def to_message(self) -> Message:
        """As an attune.v1.Problem."""
        from attune import api

        return api.message("Problem")(
            operation=1,
            batch=self.batch,
            heads_q=self.heads_q,
            heads_kv=self.heads_kv,
            seq_q=self.seq_q,
            seq_kv=self.seq_kv,
            head_dim=self.head_dim,
            dtype=1 + DTYPES.index(self.dtype),
            mask=1 + MASKS.index(self.mask),
            window=self.window,
            softcap=self.softcap,
            layout=1 + LAYOUTS.index(self.layout),
            lse=self.lse,
            sinks=self.sinks,
            varlen=self.varlen,
            page_size=self.page_size,
            kv_dtype=1 + (DTYPES + KV_DTYPES).index(self.kv_dtype) if self.kv_dtype else 0,
        )

    def __str__(self) -> str:
        parts = [f"b{self.batch}", f"h{self.heads_q}"]
        if self.heads_kv != self.heads_q:
            parts.append(f"kvh{self.heads_kv}")
        parts.append(f"q{self.seq_q}")
        if self.seq_kv != self.seq_q:
            parts.append(f"kv{self.seq_kv}")
        parts += [f"d{self.head_dim}", self.dtype]
        if self.kv_dtype:
            parts.append(f"kv{self.kv_dtype}")
        if self.mask == "window":
            parts.append(f"window{self.window}")
        elif self.mask != "none":
            parts.append(self.mask)
        if self.softcap:
            parts.append(f"softcap{self.softcap:g}")
        if self.sinks:
            parts.append("sinks")
        if self.varlen:
            parts.append("varlen")
        elif self.layout != "bhsd":
            parts.append(self.layout)
        if self.page_size:
            parts.append(f"page{self.page_size}")
        if self.lse:
            parts.append("lse")
        return ".".join(parts)


def _invalid(what: str) -> InvalidArgument:
    return InvalidArgument(what, reason="INVALID_PROBLEM")


def _check(problem: Problem) -> None:
    for field, largest in _LARGEST.items():
        value = getattr(problem, field)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= largest:
            raise _invalid(f"problem: {field} is {value!r}; allowed: 1 to {largest}")
    if problem.heads_q % problem.heads_kv:
        raise _invalid(
            f"problem: heads_kv is {problem.heads_kv}; allowed: divisors of heads_q, which is {problem.heads_q}"
        )
    elements = problem.batch * problem.heads_q * max(problem.seq_q, _paged_keys(problem)) * problem.head_dim
    if elements > _MOST_ELEMENTS:
        raise _invalid(f"problem: a tensor of batch * heads * seq * head_dim = {elements:g} elements; allowed: 1e+12")
    for field, words in (("dtype", DTYPES), ("mask", MASKS), ("layout", LAYOUTS)):
        value = getattr(problem, field)
        if value not in words:
            raise _invalid(f"problem: {field} is {value!r}; allowed: {', '.join(words)}")
    if problem.kv_dtype and problem.kv_dtype not in KV_DTYPES:
        raise _invalid(
            f"problem: kv_dtype is {problem.kv_dtype!r}; allowed: {', '.join(KV_DTYPES)} and the dtype, "
            f"which is {problem.dtype}"
        )
    least, most = (1, _LARGEST_WINDOW) if problem.mask == "window" else (0, 0)
    if not least <= problem.window <= most:
        raise _invalid(
            f"problem: window is {problem.window}; allowed: 1 to {_LARGEST_WINDOW} with mask window, and 0 otherwise"
        )
    if problem.softcap != 0 and not _SOFTCAPS[0] <= problem.softcap <= _SOFTCAPS[1]:
        raise _invalid(f"problem: softcap is {problem.softcap:g}; allowed: 0 (off) and {_SOFTCAPS_TEXT}")
    _check_sequences(problem)


def _check_sequences(problem: Problem) -> None:
    page_size = problem.page_size
    if not isinstance(page_size, int) or isinstance(page_size, bool) or not 0 <= page_size <= LARGEST_PAGE:
        raise _invalid(f"problem: page_size is {page_size!r}; allowed: 0 (not paged) and 1 to {LARGEST_PAGE}")
    if problem.varlen and problem.layout != "bshd":
        raise _invalid(
            f"problem: layout is {problem.layout}; with varlen allowed is bshd, a token's heads one behind the other"
        )
    tokens = problem.batch * max(problem.seq_q, _paged_keys(problem))
    if problem.has_own_lengths and tokens > _MOST_TOKENS:
        raise _invalid(
            f"problem: batch * max(seq_q, seq_kv in whole pages) is {tokens}; "
            f"allowed with varlen or page_size: 1 to {_MOST_TOKENS}"
        )


def _paged_keys(problem: Problem) -> int:
    """Of a sequence: seq_kv, rounded up to whole pages."""
    page = max(1, problem.page_size)
    return -(-problem.seq_kv // page) * page


def _word(field: str, words: tuple[str, ...], number: int) -> str:
    if not 0 <= number <= len(words):
        raise _invalid(f"problem: {field} {number} is not known to this client")
    return words[max(number - 1, 0)]


_SIZES = {
    "b": "batch",
    "h": "heads_q",
    "kvh": "heads_kv",
    "q": "seq_q",
    "kv": "seq_kv",
    "d": "head_dim",
    "page": "page_size",
}
_FLAGS = {
    "f16": ("dtype", "f16"),
    "bf16": ("dtype", "bf16"),
    "kve4m3": ("kv_dtype", "e4m3"),
    "kve5m2": ("kv_dtype", "e5m2"),
    "causal": ("mask", "causal"),
    "causal-br": ("mask", "causal-br"),
    "bshd": ("layout", "bshd"),
    "bhsd": ("layout", "bhsd"),
    "lse": ("lse", True),
    "sinks": ("sinks", True),
    "varlen": ("varlen", True),
}
# C0 and C1 controls, DEL, and what reorders or breaks the text around it; surrogates, which are no characters.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_NUMBER = re.compile(r"(\d+\.?\d*)([eE][+-]?\d+)?", re.ASCII)


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> Problem:
    try:
        return Problem(**_read(text))
    except InvalidArgument as error:
        raise _invalid(f"problem {_quoted(text)}: {error.message}; an example is b2.h8.q512.d64.f16.causal") from None


def _read(text: str) -> dict[str, object]:
    """The fields that `text` gives."""
    given: dict[str, object] = {}
    seen: set[str] = set()
    for part in _parts(text):
        given.update(_read_part(part, seen))
    for needed in ("b", "h", "q", "d"):
        if needed not in seen:
            raise _invalid(f"'{needed}<number>' is missing")
    if "dtype" not in seen:
        raise _invalid("the dtype (f16 or bf16) is missing")
    return given


def _parts(text: str) -> list[str]:
    """Splits at dots, but keeps a softcap's decimal point with its number: "softcap30.5" is one part."""
    parts: list[str] = []
    for part in text.split("."):
        if re.fullmatch("[0-9]+([eE][-+]?[0-9]+)?", part) and parts and parts[-1].startswith("softcap"):
            parts[-1] += f".{part}"
        else:
            parts.append(part)
    return parts


def _read_part(part: str, seen: set[str]) -> dict[str, object]:
    """The fields that `part` sets; what may be given only once goes into `seen`."""
    if part in _FLAGS:
        field, value = _FLAGS[part]
        _once(field, seen)
        return {field: value}
    key = re.match("[^-0-9]*", part).group()  # type: ignore[union-attr]
    number = part[len(key) :]
    if key == "softcap":
        if not _NUMBER.fullmatch(number) or not float(number) > 0:
            raise _invalid(f"{_quoted(part)} must be a number from {_SOFTCAPS_TEXT}, as in softcap30")
        _once(key, seen)
        return {"softcap": float(number)}
    if key == "window":
        _once("mask", seen)
        return {"mask": "window", "window": _whole(part, number, _LARGEST_WINDOW)}
    if key in _SIZES:
        _once(key, seen)
        field = _SIZES[key]
        return {field: _whole(part, number, _LARGEST.get(field, LARGEST_PAGE))}
    raise _invalid(
        f"{_quoted(part)} is not known; allowed: b<N> h<N> kvh<N> q<N> kv<N> d<N> f16 bf16 kve4m3 kve5m2 "
        "causal causal-br window<N> softcap<X> sinks varlen bshd page<N> lse"
    )


def _once(key: str, seen: set[str]) -> None:
    if key in seen:
        raise _invalid(f"'{key}' is given twice")
    seen.add(key)


def _whole(part: str, number: str, largest: int) -> int:
    digits = number.lstrip("0")
    if not re.fullmatch("[0-9]{1,8}", digits) or int(digits) > largest:
        raise _invalid(f"{_quoted(part)} must be an integer from 1 to {largest}")
    return int(digits)


def _quoted(value: str) -> str:
    """As an error repeats it: short, and nothing that a terminal acts on (proto/attune/quote.h)."""
    shown = "".join(_escaped(c) if _CONTROLS.match(c) else c for c in value[:_MOST_QUOTED])
    return f"'{shown}'" if len(value) <= _MOST_QUOTED else f"'{shown}...' ({len(_bytes(value))} bytes)"


def _escaped(character: str) -> str:
    if character in "\n\r\t":
        return ascii(character)[1:-1]
    return "".join(f"\\x{byte:02x}" for byte in _bytes(character))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
