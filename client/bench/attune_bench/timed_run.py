"""The part of a run that has the device to itself: floors, then rows, each written as it comes."""

from __future__ import annotations

import datetime
import shlex
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from attune.problem import Problem
from attune.values import Answer, Provenance

from attune_bench.error import BenchError
from attune_bench.jsonl import Run, header_line, row_line
from attune_bench.progress import Progress, say
from attune_bench.records import Header, Row, Served
from attune_bench.rounds import Rules
from attune_bench.work import Roofline


@dataclass(frozen=True, slots=True)
class TimedRun:
    """What is timed, and where it is written."""

    device: str  # the daemon's name of it
    contestants: tuple[str, ...]
    problems: list[Problem]  # of the run
    left: list[Problem]  # to be timed now
    answers: Mapping[Problem, Answer | str]  # of those left, the daemon's, or why there is none
    row_time: float  # seconds of samples a problem
    heat_time: float  # seconds of samples before these that do not count
    deadline: float  # of time.monotonic(); no row begins after it
    out: Path
    name: str
    resume: Path | None

    def run(self, before: Run | None) -> tuple[Path, Run]:
        """Times what is left and returns the file of JSON lines with what is in it now, `before`'s rows first.

        Nothing of this process may have touched CUDA: a daemon promotes no timing taken beside another process.
        """
        from attune_bench.contestants.flex import Flex
        from attune_bench.device import Device
        from attune_bench.flex_ahead import compile_ahead
        from attune_bench.floors import measure_floors

        if Flex.name in self.contestants and self.left:
            say(f"compiling flex_attention for {len(self.left)} problems")
            compile_ahead(self.left)
        device = Device(int(self.device.partition(":")[2] or 0))
        header = self._header(device, measure_floors(device.facts()))
        if before:
            refuse_another_device(before.header, header)
            header = before.header
        run = Run(header, list(before.rows) if before else [])
        path = self.resume or self.out / f"{header.date[:10]}-{header.slug}-{self.name}.jsonl"
        write_run(path, run)
        progress = Progress("time", len(self.left), time.monotonic)
        with path.open("a") as file:
            for row in self._rows(device, header):
                file.write(row_line(row, header.sm_count) + "\n")
                file.flush()
                run.rows.append(row)
                progress.step(one_line(row))
        return path, run

    def _rows(self, device, header: Header) -> Iterator[Row]:
        from attune_bench.contestants import make_contestants
        from attune_bench.row import Stage, bench_row

        stage = Stage(
            device=device,
            facts=device.facts(),
            roof=Roofline(header.floors.mma_tflops.median, header.floors.read_gbs.median),
            contestants=make_contestants(self.contestants, self.answers),
            rules=Rules(seconds=self.row_time, heat_seconds=self.heat_time),
        )
        for problem in self.left:
            if time.monotonic() > self.deadline:
                return
            yield bench_row(stage, problem, served(self.answers.get(problem)))

    def _header(self, device, floors) -> Header:
        facts = device.facts()
        return Header(
            date=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            command="attune-bench " + shlex.join(sys.argv[1:]),
            device=facts.name,
            sm_count=facts.sm_count,
            l2_bytes=facts.l2_bytes,
            memory_bytes=facts.memory_bytes,
            driver=facts.driver,
            libraries=facts.libraries,
            floors=floors,
            contestants=self.contestants,
            problems=tuple(str(problem) for problem in self.problems),
        )


def write_run(path: Path, run: Run) -> None:
    """Writes header and rows whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    lines = [header_line(run.header), *(row_line(row, run.header.sm_count) for row in run.rows)]
    new.write_text("".join(f"{line}\n" for line in lines))
    new.replace(path)


def refuse_another_device(before: Header, now: Header) -> None:
    """BenchError when rows timed now would not be comparable with those of before."""
    for field_name in ("device", "driver", "libraries"):
        was, is_now = getattr(before, field_name), getattr(now, field_name)
        if was != is_now:
            raise BenchError(f"--resume: {field_name} was {was} and is {is_now}; a run stays on one device and version")


def served(answer: Answer | str | None) -> Served | None:
    """What a row says of an answer; None when there is none."""
    if not isinstance(answer, Answer):
        return None
    own = answer.provenance not in (Provenance.NEAREST, Provenance.HEURISTIC)  # else the time is of another problem
    return Served(
        variant=answer.variant.text,
        provenance=answer.provenance.name,
        ctas=answer.geometry.ctas if answer.geometry else 0,
        tuned_us=answer.timing.median_us if own and answer.timing else 0.0,
    )


def one_line(row: Row) -> str:
    """A row for people who wait."""
    times = (
        f"{name} {result.us:.1f}" if result.us else f"{name} {result.status.value}"
        for name, result in row.results.items()
    )
    return f"{row.problem}  us: {'  '.join(times)}"
