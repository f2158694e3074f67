"""A sequence of values that a notebook shows as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar, overload

T = TypeVar("T")


class Table(Sequence[T], Generic[T]):
    """Immutable; a slice of it is one, too."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[T] = ()) -> None:
        self._entries = tuple(entries)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Table[T]: ...
    def __getitem__(self, index: int | slice) -> T | Table[T]:
        return Table(self._entries[index]) if isinstance(index, slice) else self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        return self._entries == other._entries if isinstance(other, Table) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._entries)

    def __repr__(self) -> str:
        return f"Table({list(self._entries)!r})"

    def _repr_html_(self) -> str:
        from attune.display import table_html

        return table_html(self._entries)
