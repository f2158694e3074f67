"""Lists that come in pages. Every test runs for Client and for aio.Client."""

from __future__ import annotations

import datetime

import pytest
from fake import PROBLEM, message, trial

import attune
from attune.table import Table


@pytest.fixture
def many(server):
    """2,500 trials."""

    def page(request):
        begin = int(request.page_token or 0)
        end = min(begin + request.page_size, 2500)
        trials = [trial(f"trials/{number}") for number in range(begin, end)]
        return message("ListTrialsResponse", trials=trials, next_page_token=str(end) if end < 2500 else "")

    server.responses["ListTrials"] = page


def test_all_pages_are_read(connect, server, many):
    trials = connect(server).trials()
    assert [trial.name for trial in trials] == [f"trials/{number}" for number in range(2500)]
    assert len(server.asked("ListTrials")) == 3


def test_no_more_is_asked_for_than_wanted(connect, server, many):
    assert len(connect(server).trials(limit=1005)) == 1005
    assert [request.page_size for request in server.asked("ListTrials")] == [1000, 5]


def test_a_limit_that_is_none_is_named(connect, server):
    with pytest.raises(attune.InvalidArgument, match="limit is 0; it must be None or a positive integer"):
        connect(server).trials(limit=0)


def test_trials_are_filtered_by_the_server(connect, server, many):
    connect(server).trials(
        f"{PROBLEM}.bhsd",
        device="cuda:0",
        family="attention_wmma",
        verdicts=["ok", attune.Verdict.CRASHED],
        policy="cold",
        job="7",
        order="fastest",
        limit=1,
    )
    (request,) = server.asked("ListTrials")
    chosen = request.filter
    assert (chosen.problem, chosen.device_id, chosen.family) == (PROBLEM, "cuda:0", "attention_wmma")
    assert (list(chosen.verdicts), chosen.policy, chosen.job, request.order) == ([1, 7], 2, "operations/7", 2)


def test_an_order_that_is_none_is_named(connect, server):
    with pytest.raises(attune.InvalidArgument, match="order is 'best'; it must be one of newest, fastest"):
        connect(server).trials(order="best")


def test_a_part_of_a_table_is_a_table():
    table = Table("abc")
    assert table[1] == "b"
    assert table[1:] == Table("bc")
    assert list(reversed(table)) == ["c", "b", "a"]


def test_retimings_are_of_a_range_of_time(connect, server):
    retiming = message("Retiming", problem_text=PROBLEM, device_id="cuda:0", variant="a:B=1", policy=1, count=3)
    retiming.timing.median_us = 40
    retiming.finish_time.seconds = 1_800_000_000
    server.responses["ListRetimings"] = message("ListRetimingsResponse", retimings=[retiming])
    start = datetime.datetime(2026, 11, 1, tzinfo=datetime.timezone.utc)
    end = start + datetime.timedelta(seconds=0.5)
    (found,) = connect(server).retimings(PROBLEM, start=start, end=end, spans=30, policy="hot")
    assert (found.problem_text, found.timing.median_us, found.count) == (PROBLEM, 40, 3)
    assert found.finish_time == datetime.datetime.fromtimestamp(1_800_000_000, tz=datetime.timezone.utc)
    (request,) = server.asked("ListRetimings")
    assert (request.problem, request.spans, request.policy) == (PROBLEM, 30, 1)
    assert (request.start_time.seconds, request.end_time.nanos) == (int(start.timestamp()), 500_000_000)


def test_trends_are_filtered_by_state(connect, server):
    trend = message("Trend", problem_text=PROBLEM, class_alias="l4", policy=1, state=4, change=0.05, nights=3)
    change = trend.changes.add(what="driver", to="590.2")
    setattr(change, "from", "580.1")
    server.responses["ListTrends"] = message("ListTrendsResponse", trends=[trend])
    end = datetime.datetime(2026, 11, 1, tzinfo=datetime.timezone.utc)
    (found,) = connect(server).trends(PROBLEM, states=["slower"], end=end, points=30, regression=0.03)
    assert (found.state, found.change, found.nights, found.latest) == (attune.values.TrendState.SLOWER, 0.05, 3, None)
    assert [(change.what, change.before, change.to) for change in found.changes] == [("driver", "580.1", "590.2")]
    (request,) = server.asked("ListTrends")
    assert (request.problem, list(request.states), request.points) == (PROBLEM, [4], 30)
    assert (request.regression, request.end_time.seconds) == (0.03, int(end.timestamp()))


def test_times_of_two_selections_are_compared(connect, server):
    answer = message("CompareTimesResponse", geometric_mean=0.8)
    row = answer.rows.add(problem=PROBLEM, comparison=3, speedup=0.8)
    getattr(row, "from").timing.median_us = 40
    answer.rows.add(problem=PROBLEM, comparison=6)
    server.responses["CompareTimes"] = answer
    since = datetime.datetime(2026, 11, 1, tzinfo=datetime.timezone.utc)
    found = connect(server).compare(since, {"device": "l4", "driver": "590.2"}, policy="cold")
    assert found.geometric_mean == 0.8
    assert [(row.comparison.name, row.before and row.before.timing.median_us) for row in found.rows] == [
        ("SLOWER", 40),
        ("ONLY_TO", None),
    ]
    (request,) = server.asked("CompareTimes")
    assert getattr(request, "from").end_time.seconds == int(since.timestamp())
    assert (request.to.device_id, request.to.driver, request.policy) == ("l4", "590.2", 2)


@pytest.mark.parametrize(
    ("side", "words"),
    [
        ({"card": "l4"}, "before has 'card'; it must be one of end, device, toolchain, driver, family"),
        ({"end": "yesterday"}, r"before\['end'\] is 'yesterday'; it must be a datetime"),
    ],
)
def test_a_selection_that_means_nothing_is_refused(connect, server, side, words):
    with pytest.raises(attune.InvalidArgument, match=words):
        connect(server).compare(side)


def test_misses_are_listed_for_a_device(connect, server):
    miss = message("Miss", problem=attune.Problem.parse(PROBLEM).to_message(), count=3)
    server.responses["ListMisses"] = message("ListMissesResponse", misses=[miss])
    (found,) = connect(server).misses(device="l4", limit=5)
    assert (str(found.problem), found.count, found.variant) == (PROBLEM, 3, None)
    (request,) = server.asked("ListMisses")
    assert (request.device_id, request.page_size) == ("l4", 5)
