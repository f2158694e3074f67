"""The one thread that asks the service on behalf of every call of attention."""

from __future__ import annotations

import _thread
import logging
import threading
from collections.abc import Callable

import torch

_IDLE_S = 3600.0
_AFTER_AN_ERROR_S = 10.0

_log = logging.getLogger("attune")


class Background:
    """Does `work` until `stop`. Its thread starts at the first call of `wake` that is not capturing a CUDA graph; the
    interpreter's exit does not wait for it."""

    def __init__(self, work: Callable[[], float]) -> None:
        """`work` does one thing, and returns the seconds until there is more to do."""
        self._work = work
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._ended = threading.Event()
        self._started = False
        self._stopped = False

    def wake(self) -> bool:
        """There is something to do; whether there is a thread to do it. Waits for nothing."""
        if not self._started and not capturing():
            self.start()
        self._woken.set()
        return self._started and not self._stopped

    def start(self) -> None:
        with self._lock:
            if self._started or self._stopped:
                return
            self._started = True
        # threading.Thread.start would wait until the thread runs.
        _thread.start_new_thread(self._run, ())

    def stop(self, timeout: float) -> None:
        """Has the thread end after what it is doing, and waits for that at most so many seconds."""
        with self._lock:
            self._stopped = True
            started = self._started
        self._woken.set()
        if started:
            self._ended.wait(timeout)

    def _run(self) -> None:
        try:
            while not self._stopped:
                self._woken.clear()
                try:
                    pause = self._work()
                except Exception:  # nobody else would ever ask again
                    _log.exception("attune's background thread goes on after an error")
                    pause = _AFTER_AN_ERROR_S
                if pause > 0 and not self._stopped:
                    self._woken.wait(min(pause, _IDLE_S))
        finally:
            self._ended.set()


def capturing() -> bool:
    """Whether the calling thread's stream is recorded into a CUDA graph."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
