"""The one thread that asks the service on behalf of every call of attention."""

from __future__ import annotations

import _thread
import logging
import threading
import time
from collections.abc import Callable

_IDLE_S = 3600.0
_AFTER_AN_ERROR_S = 10.0
# After each piece of work: a call that waits for the interpreter's lock gets it then, and not after its switch interval
# of 5 ms.
_GIVE_WAY_S = 100e-6

_log = logging.getLogger("attune")


class Background:
    """Does `work` until `stop`. Its thread starts at the first `wake` that may start it; the interpreter's exit does
    not wait for it."""

    def __init__(self, work: Callable[[], float], may_start: Callable[[], bool] = lambda: True) -> None:
        """`work` does one thing, and returns the seconds until there is more to do."""
        self._work = work
        self._may_start = may_start
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._ended = threading.Event()
        self._started = False
        self._stopped = False

    def wake(self) -> bool:
        """There is something to do; whether there is a thread to do it. Waits for nothing."""
        if not self._started and self._may_start():
            self.start()
        if not self._woken.is_set():
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
                else:
                    time.sleep(_GIVE_WAY_S)
        finally:
            self._ended.set()
