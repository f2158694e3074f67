from __future__ import annotations

import io

from attune_bench.progress import Progress


def test_the_rest_is_foretold_from_the_mean_so_far():
    seconds, stream = iter([0.0, 10.0, 30.0]), io.StringIO()
    progress = Progress("time", 4, lambda: next(seconds), stream)
    progress.step("first")
    progress.step("second")
    assert stream.getvalue().splitlines() == [
        "time 1/4  first  (10 s, about 30 s to go)",
        "time 2/4  second  (30 s, about 30 s to go)",
    ]
