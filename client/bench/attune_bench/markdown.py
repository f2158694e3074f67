"""Markdown tables and how figures are written in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> list[str]:
    """The lines of a table, its first `left` columns flush left and the others flush right."""
    rules = ["---"] * left + ["---:"] * (len(columns) - left)
    cells = [columns, rules, *rows]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in cells]


def figure(value: float | None, digits: int = 3) -> str:
    """A number to so many significant digits, never in powers of ten; empty for None."""
    if value is None:
        return ""
    if value == 0:
        return "0"
    text = f"{value:#.{digits}g}"
    return f"{value:.0f}" if "e" in text or abs(value) >= 10 ** (digits - 1) else text


def factor(value: float | None) -> str:
    """ "1.31x"; empty for None."""
    return "" if value is None else f"{value:.2f}x"


def error(value: float | None) -> str:
    """An absolute error; "not finite" for None."""
    return "not finite" if value is None else f"{value:.1e}"
