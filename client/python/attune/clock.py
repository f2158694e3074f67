"""Time as the client sees it, so that tests can stand in for it."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timezone


class Clock:
    """Thread-safe. Times are seconds."""

    def now(self) -> float:
        """Since some fixed moment; never runs backwards."""
        return time.monotonic()

    def wall(self) -> float:
        """Since 1970-01-01 UTC."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def sleep_async(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def utc_text(seconds: float) -> str:
    """A moment, seconds since 1970-01-01 UTC, as people read it: "2026-11-20 18:53 UTC"."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
