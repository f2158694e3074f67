"""aio.Client as a client that needs no awaiting, so that one test covers both."""

from __future__ import annotations

import inspect


class Awaited:
    """Runs the methods of an async object to their end on `loop`."""

    def __init__(self, target, loop):
        self._target = target
        self._loop = loop

    def __getattr__(self, name):
        value = getattr(self._target, name)
        if not callable(value):
            return value

        def method(*args, **kwargs):
            result = value(*args, **kwargs)
            if inspect.isawaitable(result):
                result = self._loop.run_until_complete(result)
            return Awaited(result, self._loop) if hasattr(result, "__aiter__") else result

        return method

    def __iter__(self):
        changes = aiter(self._target)
        try:
            while True:
                yield self._loop.run_until_complete(anext(changes))
        except StopAsyncIteration:
            return
        finally:
            self._loop.run_until_complete(changes.aclose())
