"""The thread that works for every call."""

from __future__ import annotations

import threading

import pytest

from attune.background import thread as background
from attune.background.thread import Background


class Work:
    """`done` is set once it was worked on; `threads` are those that did."""

    def __init__(self, fails: int = 0) -> None:
        self.done = threading.Event()
        self.threads: set[int] = set()
        self._fails = fails

    def __call__(self) -> float:
        self.threads.add(threading.get_ident())
        if self._fails:
            self._fails -= 1
            raise RuntimeError("planned")
        self.done.set()
        return 3600.0


def test_one_thread_works_and_it_is_not_the_callers() -> None:
    work = Work()
    thread = Background(work)
    for _ in range(10):
        work.done.clear()
        assert thread.wake()
        assert work.done.wait(60)
    thread.stop(60)
    assert len(work.threads) == 1
    assert threading.get_ident() not in work.threads


def test_none_starts_where_it_may_not() -> None:
    may = [False]
    work = Work()
    thread = Background(work, lambda: may[0])
    assert not thread.wake()
    assert not work.threads
    may[0] = True
    assert thread.wake()
    assert work.done.wait(60)
    thread.stop(60)


def test_it_goes_on_after_an_error(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(background, "_AFTER_AN_ERROR_S", 0.001)
    work = Work(fails=2)
    thread = Background(work)
    thread.wake()
    assert work.done.wait(60)
    thread.stop(60)
    assert "goes on after an error" in caplog.text


def test_a_stopped_one_does_not_start_again() -> None:
    work = Work()
    thread = Background(work)
    thread.stop(0)
    assert not thread.wake()
    assert not work.threads


def test_stopping_waits_no_longer_than_it_is_told() -> None:
    entered, released = threading.Event(), threading.Event()

    def hang() -> float:
        entered.set()
        released.wait(60)
        return 3600.0

    thread = Background(hang)
    thread.wake()
    assert entered.wait(60)
    thread.stop(0.01)
    released.set()
    thread.stop(60)
