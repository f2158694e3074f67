"""What goes wrong, as exceptions: the server's code, its google.rpc.ErrorInfo, and one message for people."""

from __future__ import annotations

from collections.abc import Mapping


class AttuneError(Exception):
    """`code` is the gRPC code's name ("NOT_FOUND"); `reason` and `metadata` are the server's ErrorInfo, or empty."""

    code = "UNKNOWN"

    def __init__(
        self, message: str, *, code: str = "", reason: str = "", metadata: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code or type(self).code
        self.reason = reason
        self.message = message
        self.metadata = dict(metadata or {})

    def __str__(self) -> str:
        if not self.reason:
            return self.message
        pairs = "".join(f" {key}={value}" for key, value in sorted(self.metadata.items()))
        return f"{self.message} [{self.reason}{pairs}]"

    def __reduce__(self) -> tuple:
        return _restore, (type(self), self.message, self.code, self.reason, self.metadata)


class InvalidArgument(AttuneError, ValueError):
    """A field has a value that is not allowed."""

    code = "INVALID_ARGUMENT"


class NotFound(AttuneError, LookupError):
    """There is no such answer, trial, operation, device or family."""

    code = "NOT_FOUND"


class FailedPrecondition(AttuneError):
    """The request is right, but not in the state that the server is in."""

    code = "FAILED_PRECONDITION"


class DataLoss(AttuneError):
    """A file is damaged."""

    code = "DATA_LOSS"


class Cancelled(AttuneError):
    """The operation was cancelled; what it had committed stays."""

    code = "CANCELLED"


class OperationFailed(AttuneError):
    """The server could not finish the operation; `code` says how it failed."""

    code = "INTERNAL"


class Unreachable(AttuneError):
    """Nobody answered (UNAVAILABLE), or not in time (DEADLINE_EXCEEDED), and nothing kept can answer instead."""

    code = "UNAVAILABLE"


_TYPES: dict[str, type[AttuneError]] = {
    kind.code: kind for kind in (InvalidArgument, NotFound, FailedPrecondition, DataLoss, Cancelled, Unreachable)
}
_TYPES["DEADLINE_EXCEEDED"] = Unreachable

_CODES = (
    *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"),
    *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED"),
    *("INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
)


def code_name(number: int) -> str:
    """gRPC's name for a code: 5 is "NOT_FOUND"."""
    return _CODES[number] if 0 <= number < len(_CODES) else "UNKNOWN"


def make(code: str, message: str, *, reason: str = "", metadata: Mapping[str, str] | None = None) -> AttuneError:
    """The error of the class that stands for gRPC code `code`; AttuneError itself when none does."""
    return _TYPES.get(code, AttuneError)(message, code=code, reason=reason, metadata=metadata)


def _restore(kind: type[AttuneError], message: str, code: str, reason: str, metadata: Mapping[str, str]) -> AttuneError:
    return kind(message, code=code, reason=reason, metadata=metadata)
