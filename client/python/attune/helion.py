"""Helion's cache of tuned configurations on attune's server: what one process has tuned, others start with.

    export HELION_AUTOTUNE_CACHE=RemoteAutotuneCache
    export HELION_REMOTE_CACHE_BACKEND=attune.helion.Backend

The interface is that of Helion 1.5. attune.blob_cache says which server, and whose configurations.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from helion.autotuner.remote_cache import RemoteCacheBackend

from attune import blob_cache

NAMESPACE = "helion"
_FILE = "best_config.json"
_MOST_LISTED = 64


class Backend(RemoteCacheBackend):
    """What Helion keeps under a key is one JSON text."""

    def get(self, key: str) -> str | None:
        """What was put under `key`; None where there is none that Helion could read."""
        found = blob_cache.get(NAMESPACE, key, [_FILE])
        return _readable(found[_FILE]) if found else None

    def put(self, key: str, data: str) -> None:
        """Keeps it, if the server takes it."""
        blob_cache.put(NAMESPACE, key, _FILE, data.encode())

    def list(self, max_results: int | None = None) -> Iterable[str]:
        """Those put last first, at most 64, for Helion to begin a search with."""
        limit = _MOST_LISTED if max_results is None else min(max_results, _MOST_LISTED)
        if limit < 1:
            return []
        entries = (_readable(data) for data in blob_cache.newest(NAMESPACE, _FILE, limit))
        return [entry for entry in entries if entry is not None]


def _readable(data: bytes) -> str | None:
    """Helion reads a text without looking whether it is one of its own: another would end the compilation."""
    try:
        text = data.decode()
        record = json.loads(text)
    except ValueError:
        return None
    return text if isinstance(record, dict) and isinstance(record.get("config"), str) else None
