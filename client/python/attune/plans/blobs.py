"""Files that other programs' caches keep on the server (docs/access.md says whose they are)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from attune import arguments
from attune.errors import DataLoss, InvalidArgument
from attune.plans.plan import Plan, call, pages
from attune.table import Table
from attune.values import Blob

LARGEST_BLOB_BYTES = (4 << 20) - (64 << 10)


def get_blobs(
    namespace: str, key: str, files: Sequence[str], *, principals: Sequence[str] = ("self",)
) -> Plan[dict[str, bytes]]:
    """The files of `key`, by name: all of the first of `principals` who has every one of them, or none.

    "self" is the caller. Another's are had only where that one shares them. Whoever loads what a file holds runs its
    owner's code.
    """
    found: dict[str, bytes] = {}
    missing = arguments.several("files", files, "'kernel.cubin'")
    whose = arguments.several("principals", principals, "'token:ci'")
    while missing:
        response = yield from call("GetBlobs", namespace=namespace, key=key, files=missing, principals=whose)
        if not response.blobs:
            return {}
        for blob in response.blobs:
            if hashlib.sha256(blob.data).hexdigest() != blob.sha256:
                raise DataLoss(f"blob '{blob.file}' under '{key}' is not what {blob.principal} has put")
            found[blob.file] = blob.data
        whose, missing = [response.blobs[0].principal], list(response.left_out)
    return {file: found[file] for file in files}


def put_blob(namespace: str, key: str, file: str, data: bytes, *, shared: bool = False) -> Plan[Blob]:
    """Keeps a file on the server, in place of the caller's own under the same names. For authors.

    `shared`: every reader may get it, who names the caller's principal. What was used least recently goes when there is
    no more room.
    """
    if not isinstance(data, bytes):
        raise InvalidArgument(f"data is a {type(data).__name__}; it must be bytes")
    if len(data) > LARGEST_BLOB_BYTES:
        raise InvalidArgument(f"data has {len(data)} bytes; allowed: at most {LARGEST_BLOB_BYTES}")
    response = yield from call("PutBlob", namespace=namespace, key=key, file=file, data=data, shared=shared)
    return Blob.from_message(response)


def blobs(*, namespace: str = "", key: str = "", principal: str = "", limit: int | None = None) -> Plan[Table[Blob]]:
    """What is kept, newest first, without data: one's own and what is shared; everything for admins.

    `principal` "self" is the caller.
    """
    fields = {"namespace": namespace, "key": key, "principal": principal}
    return (yield from pages("ListBlobs", "blobs", Blob.from_message, limit, **fields))


def delete_blobs(*, namespace: str = "", key: str = "", principal: str = "self") -> Plan[int]:
    """Removes the caller's own files, in `namespace` and under `key` where they are given; for admins another's.

    Returns how many there were.
    """
    return (yield from call("DeleteBlobs", namespace=namespace, key=key, principal=principal)).blobs
