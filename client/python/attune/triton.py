"""Triton's cache of compiled kernels on attune's server: what one process has compiled, others load.

    export TRITON_CACHE_MANAGER=triton.runtime.cache:RemoteCacheManager
    export TRITON_REMOTE_CACHE_BACKEND=attune.triton:Backend

The interface is that of Triton 3.9. attune.blob_cache says which server, and whose kernels: they run in this process.
"""

from __future__ import annotations

import os
import pathlib
import platform
import sysconfig
from collections.abc import Iterable

from triton.runtime.cache import FileCacheManager, RemoteCacheBackend

from attune import blob_cache

NAMESPACE = "triton"


class Backend(RemoteCacheBackend):
    """The files of one key of Triton's."""

    def __init__(self, key: str) -> None:
        self._key = key

    def get(self, filenames: Iterable[str]) -> dict[str, bytes]:
        """All of the files, by name, or none: the server's, or else what Triton's own folder has of earlier runs."""
        files = list(filenames)
        # Triton writes them under these names, which come from a file of the cache.
        if not files or any(os.path.basename(file) != file for file in files):
            return {}
        keys = {self._key_of(file) for file in files}
        found = blob_cache.get(NAMESPACE, keys.pop(), files) if len(keys) == 1 else {}
        return found or self._local(files)

    def put(self, filename: str, data: bytes) -> None:
        """Keeps the file, if the server takes it."""
        blob_cache.put(NAMESPACE, self._key_of(filename), filename, data)

    def _local(self, files: list[str]) -> dict[str, bytes]:
        folder = FileCacheManager(self._key)
        found = {}
        try:
            for file in files:
                path = folder.get_file(file)
                if path is None:
                    return {}
                found[file] = pathlib.Path(path).read_bytes()
        except OSError:
            return {}
        return found

    def _key_of(self, file: str) -> str:
        """Libraries are this host's: Triton's key has neither its C library nor its Python."""
        return f"{self._key}@{_host()}" if file.endswith((".so", ".pyd")) else self._key


def _host() -> str:
    return f"{sysconfig.get_config_var('SOABI')}-{''.join(platform.libc_ver())}"
