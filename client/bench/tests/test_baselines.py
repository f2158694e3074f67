from __future__ import annotations

import attune
from fake import message
from runs import PREFILL, right, row, run, wrong

from attune_bench.baselines import record_baselines


def test_each_right_time_of_another_is_recorded_under_its_name(server):
    server.responses["RecordBaseline"] = lambda request: message("Baseline", problem=request.baseline.problem)
    noted = right("efficient", 20.0, note="K and V expanded")
    made = run(row(PREFILL, right("attune", 10.0), right("flash", 13.1), wrong("cudnn", 9.0), noted))
    with attune.Client(server.address) as client:
        assert record_baselines(client, "cuda:0", made) == 2
    recorded = [request.baseline for request in server.asked("RecordBaseline")]
    assert [(one.contender, one.median_us) for one in recorded] == [("flash", 13.1), ("efficient", 20.0)]
    assert recorded[0].device_id == "cuda:0" and recorded[0].low_us < 13.1 < recorded[0].high_us
    assert recorded[1].note == "attune-bench 2026-11-20, PyTorch 2.11.0; K and V expanded"
