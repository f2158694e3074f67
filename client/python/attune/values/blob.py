"""Files that other programs' caches keep on the server."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from attune.values.convert import Value


@dataclass(frozen=True, slots=True)
class Blob(Value):
    """One file, without its data."""

    principal: str  # whose it is: "token:ci"
    namespace: str  # which cache it is of: "triton"
    key: str
    file: str
    shared: bool  # whether others may read it
    bytes: int
    sha256: str
    create_time: datetime | None
    use_time: datetime | None  # last put or got; may be minutes behind
