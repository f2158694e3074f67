"""What a server serves, as a snapshot file."""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from google.protobuf.message import Message

from attune import api
from attune.errors import NotFound
from attune.plans.plan import Call, Plan, call, pages
from attune.snapshot import Snapshot


class ExportSummary(NamedTuple):
    answers: int
    devices: int


def _served_on(incumbent: Message, devices: Message) -> list[str]:
    """The server's devices of the incumbent's class; where it has none, the one that timed it."""
    same = [device.id for device in devices.devices if device.fingerprint == incumbent.device_class]
    return same if incumbent.device_class and same else [incumbent.device_id]


def _objectives(incumbent: Message) -> list[int]:
    """What it is asked for: by the objectives that have an answer of their own, and by time, which is last."""
    return [one.objective for one in incumbent.alternatives if one.HasField("trial")] + [0]


def export_snapshot(path: str | os.PathLike[str], *, artifacts: bool = True) -> Plan[ExportSummary]:
    """Saves what the server serves now, every incumbent on every device, as a snapshot file."""
    devices = yield from call("ListDevices")
    answers: list[tuple[Message, Message]] = []
    for incumbent in (yield from pages("ListIncumbents", "incumbents", lambda message: message, None)):
        for device_id in _served_on(incumbent, devices):
            for objective in _objectives(incumbent):
                request = api.message("GetBestRequest")(
                    problem=incumbent.problem,
                    device_id=device_id,
                    policy=incumbent.policy,
                    include_artifact=artifacts,
                    include_domains=True,
                    objective=objective,
                )
                try:
                    answer = yield Call("GetBest", request)
                except NotFound:
                    continue  # rolled back since the page was made
                if answer.objective == objective:  # not by time by now
                    answers.append((request, answer))
    Snapshot(int(time.time()), devices, answers).write(path)
    return ExportSummary(len(answers), len(devices.devices))
