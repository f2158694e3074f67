"""A failed call's grpc.RpcError as an AttuneError, with the google.rpc.ErrorInfo that came with it."""

from __future__ import annotations

from collections.abc import Iterable

import grpc
from google.protobuf.message import DecodeError, Message

from attune import api, errors

_DETAILS = "grpc-status-details-bin"
# In what gRPC says when TLS fails: of the connection, or of the server's name.
_HANDSHAKE = ("handshake", "Verification Check", "in peer certificate")
_HANDSHAKE_ADVICE = (
    "it must speak TLS with a certificate that tls_ca (or this system) trusts and that has its name (or "
    "tls_server_name), and take the client's certificate, if it asks for one"
)
# A server ends the connection without an answer when it wanted another kind of one.
_CLOSED_ADVICE = "; it may want TLS (tls_ca), or the client's certificate (tls_cert)"


def to_error(error: grpc.RpcError, server: str) -> errors.AttuneError:
    """When the transport failed rather than the server answering, the message names `server`."""
    code = error.code().name
    details = error.details() or ""
    info = _error_info(error.trailing_metadata() or ())
    if info is not None:
        return errors.make(code, details, reason=info.reason, metadata=info.metadata)
    if code == "UNAVAILABLE" and any(said in details for said in _HANDSHAKE):
        return errors.make(code, f"no TLS connection to {server}: {details}; {_HANDSHAKE_ADVICE}")
    if code == "UNAVAILABLE":
        advice = _CLOSED_ADVICE if "Socket closed" in details else ""
        return errors.make(code, f"no server reached at {server}: {details}{advice}")
    if code == "DEADLINE_EXCEEDED":
        return errors.make(code, f"the server at {server} did not answer in time: {details}")
    return errors.make(code, details)


def _error_info(trailers: Iterable[tuple[str, bytes]]) -> Message | None:
    """The first ErrorInfo among a google.rpc.Status's details."""
    for key, value in trailers:
        if key != _DETAILS:
            continue
        try:
            status = api.message("google.rpc.Status").FromString(value)
        except DecodeError:
            return None
        for detail in status.details:
            info = api.message("google.rpc.ErrorInfo")()
            if detail.Unpack(info):
                return info
    return None
