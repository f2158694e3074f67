"""A run as JSON lines: the header first, then a row a problem, each written as soon as it is known.

A row carries, beside what `records.Row` holds, the figures people look for: `latency_ms`, `speedup_vs_torch`,
`speedup_vs_flash`, `speedup_vs_best`, `ctas`, `sm_count`, `tflops`, `gbs` and `percent_of_roof`, all of attune's
kernel, null where it has no right result. They follow from the rest and are not read back.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attune_bench.error import BenchError
from attune_bench.records import (
    FLASH,
    OURS,
    TORCH,
    Accuracy,
    Eager,
    Floors,
    Header,
    Result,
    Row,
    Served,
    Status,
    Timing,
)
from attune_bench.statistics import Interval


@dataclass(frozen=True, slots=True)
class Run:
    """A header with the rows that follow it."""

    header: Header
    rows: list[Row]


def header_line(header: Header) -> str:
    """One line of JSON."""
    return json.dumps({"type": "header", **dataclasses.asdict(header)})


def row_line(row: Row, sm_count: int) -> str:
    """One line of JSON; `sm_count` is the device's."""
    us = row.us(OURS)
    figures = {
        "latency_ms": us and us / 1e3,
        "speedup_vs_torch": row.speedup(TORCH),
        "speedup_vs_flash": row.speedup(FLASH),
        "speedup_vs_best": row.speedup(row.best_of_torch()),
        "ctas": row.served and row.served.ctas,
        "sm_count": sm_count,
        "tflops": us and row.flops / us / 1e6,
        "gbs": us and row.bytes / us / 1e3,
        "percent_of_roof": row.percent_of_roof(OURS),
    }
    fields = dataclasses.asdict(row)
    for name, result in row.results.items():
        fields["results"][name]["status"] = result.status.value
        fields["results"][name]["percent_of_roof"] = row.percent_of_roof(name)
    return json.dumps({"type": "row", "problem": fields.pop("problem"), **figures, **fields})


def read_run(path: Path) -> Run:
    """What a file holds. A half-written last line, which a killed run leaves, is dropped.

    Raises BenchError naming file and line when another line is damaged, or the first is no header.
    """
    lines = path.read_text().splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
    header: Header | None = None
    rows: list[Row] = []
    for number, line in enumerate(lines, start=1):
        try:
            value = json.loads(line)
            kind = value.pop("type")
            if kind == "header":
                header = _header(value)
            elif kind == "row":
                rows.append(_row(value))
            else:
                raise ValueError(f"type is {kind!r}; it must be 'header' or 'row'")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BenchError(f"{path}:{number}: {error}") from error
    if header is None:
        raise BenchError(f"{path}: has no header; the first line must be one")
    return Run(header, rows)


def _interval(value: dict[str, float]) -> Interval:
    return Interval(**value)


def _header(value: dict[str, Any]) -> Header:
    floors = Floors(**{name: _interval(interval) for name, interval in value.pop("floors").items()})
    contestants, problems = tuple(value.pop("contestants")), tuple(value.pop("problems"))
    return Header(**value, floors=floors, contestants=contestants, problems=problems)


def _row(value: dict[str, Any]) -> Row:
    fields = {name: value[name] for name in (field.name for field in dataclasses.fields(Row))}
    fields["results"] = {name: _result(result) for name, result in fields["results"].items()}
    fields["served"] = Served(**fields["served"]) if fields["served"] else None
    return Row(**fields)


def _result(value: dict[str, Any]) -> Result:
    timing, accuracy, eager = value["timing"], value["accuracy"], value["eager"]
    return Result(
        contestant=value["contestant"],
        status=Status(value["status"]),
        reason=value["reason"],
        note=value["note"],
        accuracy=Accuracy(**accuracy) if accuracy else None,
        timing=Timing(**{**timing, "us": _interval(timing["us"])}) if timing else None,
        eager=Eager(**eager) if eager else None,
    )
