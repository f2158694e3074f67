"""Values as HTML tables, for notebooks. Only text from here is markup: whatever a server says is escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from attune.values import (
    Answer,
    Baseline,
    Device,
    Explanation,
    Host,
    Incumbent,
    KernelFamily,
    Miss,
    Operation,
    Provenance,
    Timing,
    Trial,
    Verdict,
)

Cell = str | int | float | None
Column = tuple[str, Callable[[Any], Cell]]


def _micros(us: float) -> str:
    return f"{us:.2f}" if us > 0 else ""


def _median(timing: Timing | None) -> str | None:
    return None if timing is None else _micros(timing.median_us)


def _share(share: float) -> str:
    return f"{share:.0%}"


def _of(part: str, read: Callable[[Any], Cell]) -> Callable[[Any], Cell]:
    """`read` of a value's field `part`; an empty cell where that is None."""

    def cell(value: Any) -> Cell:
        inner = getattr(value, part)
        return None if inner is None else read(inner)

    return cell


_TRIAL: tuple[Column, ...] = (
    ("trial", lambda trial: trial.name),
    ("problem", lambda trial: str(trial.problem)),
    ("verdict", lambda trial: trial.verdict.name),
    ("time us", _of("timing", lambda timing: _micros(timing.median_us))),
    ("ctas", _of("geometry", lambda geometry: geometry.ctas)),
    ("waves", _of("geometry", lambda geometry: f"{geometry.waves:.2f}")),
    ("occup", _of("geometry", lambda geometry: _share(geometry.occupancy))),
    ("regs", _of("resources", lambda resources: resources.registers)),
    ("spill B", _of("resources", lambda resources: resources.spill_bytes)),
    ("shared B", _of("resources", lambda resources: resources.shared_bytes)),
    ("max error", _of("accuracy", lambda accuracy: f"{accuracy.max_abs_error:.1e}")),
    ("variant", lambda trial: trial.variant.text),
)
_BASELINE: tuple[Column, ...] = (
    ("problem", lambda baseline: str(baseline.problem)),
    ("device", lambda baseline: baseline.device_id),
    ("policy", lambda baseline: baseline.policy.name),
    ("contender", lambda baseline: baseline.contender),
    ("time us", lambda baseline: _micros(baseline.median_us)),
    ("low", lambda baseline: _micros(baseline.low_us)),
    ("high", lambda baseline: _micros(baseline.high_us)),
    ("note", lambda baseline: baseline.note),
)
_COLUMNS: dict[type, tuple[Column, ...]] = {
    Trial: _TRIAL,
    Baseline: _BASELINE,
    Incumbent: (
        ("incumbent", lambda incumbent: incumbent.name),
        ("problem", lambda incumbent: str(incumbent.problem)),
        ("device", lambda incumbent: incumbent.device_id),
        ("policy", lambda incumbent: incumbent.policy.name),
        ("time us", lambda incumbent: _median(incumbent.timing or incumbent.trial.timing)),
        ("variant", lambda incumbent: incumbent.trial.variant.text),
        ("why", lambda incumbent: incumbent.why),
    ),
    Miss: (
        ("problem", lambda miss: str(miss.problem)),
        ("device", lambda miss: miss.device_id),
        ("policy", lambda miss: miss.policy.name),
        ("asked", lambda miss: str(miss.count)),
        ("answer", lambda miss: miss.provenance.name if miss.provenance.value else "none"),
        ("code", lambda miss: miss.artifact_state.name if miss.artifact_state.value else ""),
        ("what", lambda miss: miss.provenance_detail),
    ),
    Device: (
        ("device", lambda device: device.id),
        ("class", lambda device: device.class_alias),
        ("model", lambda device: device.model),
        ("target", lambda device: device.target),
        ("SMs", lambda device: device.compute_units),
        ("shared a block", lambda device: f"{device.shared_bytes_per_block / 1024:.0f} KiB"),
        ("memory", lambda device: f"{device.memory_bytes / 2**30:.1f} GiB"),
        ("driver", lambda device: device.driver),
    ),
    KernelFamily: (
        ("family", lambda family: family.name),
        ("backend", lambda family: family.backend.name.lower()),
        ("parameters", lambda family: ", ".join(parameter.name for parameter in family.parameters)),
        ("description", lambda family: family.description),
    ),
    Operation: (
        ("operation", lambda operation: operation.name),
        ("title", lambda operation: operation.title),
        ("state", lambda operation: operation.state.name),
        ("trials", lambda operation: f"{operation.progress.trials_done}/{operation.progress.trials_total}"),
        ("message", lambda operation: operation.error.message if operation.error else operation.progress.message),
    ),
}


def table_html(values: Sequence[Any]) -> str:
    """`values`, all of one type, a row each."""
    if not values:
        return "<p>none</p>"
    columns = _COLUMNS.get(type(values[0]))
    if columns is None:
        return _table((), [[str(value)] for value in values])
    return _table([title for title, _ in columns], [[read(value) for _, read in columns] for value in values])


def answer_html(answer: Answer) -> str:
    """What is served, how fast, and against whom."""
    provenance = answer.provenance.name + (f": {answer.provenance_detail}" if answer.provenance_detail else "")
    fields: list[tuple[str, Cell]] = [
        ("problem", f"{answer.problem} on {answer.device_id}"),
        ("provenance", provenance),
        ("variant", answer.variant.text),
    ]
    if answer.timing:
        fields.append(("time", _answer_time(answer, answer.timing)))
    if answer.geometry:
        grid = answer.geometry
        fields.append(("grid", f"{grid.ctas} CTAs of {grid.threads_per_cta} threads, {grid.waves:.2f} waves"))
    if answer.trial:
        fields.append(("trial", answer.trial))
    for baseline in answer.baselines:
        ratio = f" ({baseline.median_us / answer.timing.median_us:.2f}x)" if answer.timing else ""
        fields.append((baseline.contender, f"{baseline.median_us:.2f} us{ratio}"))
    return _table((), fields)


def explanation_html(explanation: Explanation) -> str:
    """The trial's figures, then what bounds it."""
    trial = explanation.trial
    reached = f"{explanation.tflops:.3g} TFLOP/s, {explanation.gbs:.3g} GB/s"
    fields = [
        ("trial", f"{trial.name}, {trial.problem}"),
        ("variant", trial.variant.text),
        ("verdict", trial.verdict.name + (f": {trial.detail}" if trial.detail else "")),
        ("time", _time(trial.timing) if trial.timing and trial.verdict is Verdict.OK else None),
        ("reached", reached if explanation.tflops else None),
    ]
    findings = [[finding.bound.name, finding.text, finding.advice] for finding in explanation.findings]
    return _table((), fields) + _table(("bound", "finding", "advice"), findings)


def host_html(host: Host) -> str:
    """The devices, then why a backend is not in use."""
    states = [
        [status.backend.name.lower(), status.compiler if status.available else f"not in use: {status.reason}"]
        for status in host.backends
    ]
    return table_html(host.devices) + _table(("backend", f"attuned {host.server_version}"), states)


def _answer_time(answer: Answer, timing: Timing) -> str:
    if answer.provenance is not Provenance.NEAREST:
        return _time(timing)
    # "from b2.h8.q512.d64.f16", and more where the answer was kept
    where = re.match(r"from (\S+?)(?=[;,\s]|$)", answer.provenance_detail)
    measured = f"measured at {where[1] if where else 'the nearest problem'}: {timing.median_us:.2f} us"
    if answer.predicted is None:
        return measured
    predicted = answer.predicted
    return f"predicted {predicted.us:.2f} us ({predicted.low_us:.2f}..{predicted.high_us:.2f}); {measured}"


def _time(timing: Timing) -> str:
    return f"{timing.median_us:.2f} us, 95 % interval {timing.low_us:.2f}..{timing.high_us:.2f}"


def _table(head: Iterable[str], rows: Iterable[Sequence[Cell]]) -> str:
    titles = "".join(f"<th>{html.escape(title)}</th>" for title in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{titles}</tr></thead>' if titles else ''}<tbody>{body}</tbody></table>"


def _cell(value: Cell) -> str:
    return f"<td>{'' if value is None else html.escape(str(value))}</td>"
