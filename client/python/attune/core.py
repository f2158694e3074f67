"""What Client and aio.Client are made of, apart from their I/O."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import os
from collections.abc import Callable
from typing import Any, TypeVar

from attune import api
from attune.arguments import is_number
from attune.cache import AnswerCache
from attune.clock import Clock
from attune.default_server import default_server
from attune.errors import FailedPrecondition, InvalidArgument
from attune.lookup import Lookup
from attune.named_servers import environment_for, is_name, path_in
from attune.plans.plan import Call
from attune.retry import Attempts, RetryPolicy
from attune.tls import Tls
from attune.token import is_local, read_token

C = TypeVar("C", bound="Core")

_LARGEST_MESSAGE_BYTES = 256 << 20  # an answer carries its artifact


class Core:
    """The options, the cache and the snapshot of a client."""

    def __init__(
        self,
        server: str | None = None,
        *,
        deadline: float = 10.0,
        retry: RetryPolicy | None = None,
        cache_ttl: float = 60.0,
        cache_capacity: int = 4096,
        snapshot: str | os.PathLike[str] | None = None,
        unreachable_hold: float = 2.0,
        reattach_for: float = 120.0,
        token_file: str | os.PathLike[str] | None = None,
        tls_ca: str | os.PathLike[str] | None = None,
        tls_cert: str | os.PathLike[str] | None = None,
        tls_key: str | os.PathLike[str] | None = None,
        tls_server_name: str | None = None,
        insecure: bool = False,
        clock: Clock | None = None,
    ) -> None:
        """Makes no call yet: an unreachable server shows at the first one.

        `server` is "host:port", "unix:/path" or a name in ~/.config/attune/servers (docs/cli.md), which also says how
        it is reached; without one $ATTUNE_SERVER, then the socket of this host's daemon, then localhost:7411. Times
        are seconds:
        `deadline` of each call, its retries included; `cache_ttl` of a cached answer (`cache_capacity` of them, 0
        switches the cache off). `snapshot` is a file to answer from when the server cannot be reached; after a failed
        attempt to reach it, no other is made for `unreachable_hold`. `reattach_for` is how long following an operation
        tries to attach again after its stream broke. `token_file`, or else a named server's own, or of an address
        $ATTUNE_TOKEN_FILE, has the token that calls bring, read anew for each; none is sent to another host in clear,
        and FailedPrecondition says so.

        TCP to other hosts is encrypted and the server verified, and to this one where an option asks for it: `tls_ca`
        has who signs servers' certificates (else whom this system trusts), `tls_cert` and `tls_key` the client's own
        certificate and its key, all PEM files, read once; `tls_server_name` is the name in the server's certificate
        where that is not the host of `server`. Without them $ATTUNE_TLS_CA, _CERT, _KEY and _SERVER_NAME count.
        `insecure` speaks to another host in clear. InvalidArgument names the option, its value and what is allowed.
        """
        given = os.environ.get("ATTUNE_SERVER", "") if server is None else server
        environ = environment_for(given, os.environ) if isinstance(given, str) else os.environ
        if environ is not os.environ:
            self.server = _checked(f"the server of '{given}'", environ["ATTUNE_SERVER"])
        elif server is None:
            self.server = _checked("$ATTUNE_SERVER", default_server(os.environ))
        else:
            self.server = _checked("server", server)
        self.token_file = os.fspath(token_file or environ.get("ATTUNE_TOKEN_FILE") or "")
        self.tls = Tls.chosen(
            environ, ca=tls_ca, cert=tls_cert, key=tls_key, server_name=tls_server_name, insecure=insecure
        )
        if self.token_file and not is_local(self.server) and not self.tls.encrypts(self.server):
            raise FailedPrecondition(
                f"a token would cross the network to '{self.server}' unencrypted; connect without insecure, or "
                "without a token file"
            )
        if not (is_number(deadline) and 0 < deadline < math.inf):
            raise InvalidArgument(f"deadline is {deadline!r}; it must be a positive number of seconds")
        others = {"cache_ttl": cache_ttl, "cache_capacity": cache_capacity}
        for name, value in {**others, "unreachable_hold": unreachable_hold, "reattach_for": reattach_for}.items():
            if not (is_number(value) and value >= 0):
                raise InvalidArgument(f"{name} is {value!r}; it must be a number, at least 0")
        self.deadline = deadline
        self.retry = retry or RetryPolicy()
        self.reattach_for = reattach_for
        self.clock = clock or Clock()
        self.lookup = Lookup(
            cache=AnswerCache(cache_capacity),
            time_to_live=cache_ttl,
            snapshot_path=os.fspath(snapshot) if snapshot else "",
            unreachable_hold=unreachable_hold,
            clock=self.clock,
        )
        self.closed = False
        self._connect()

    def _connect(self) -> None:
        """Makes the channel, which connects when it is first needed."""
        raise NotImplementedError

    def check_open(self) -> None:
        """Raises FailedPrecondition after `close`."""
        if self.closed:
            raise FailedPrecondition(f"the client of {self.server} is closed; make another one")

    def _channel_of(self, transport: Any) -> Any:
        """A channel of `transport`, which is grpc or grpc.aio."""
        options = channel_options(self.retry)
        if not self.tls.encrypts(self.server):
            return transport.insecure_channel(self.server, options=options)
        return transport.secure_channel(
            self.server, self.tls.credentials(), options=[*options, *self.tls.channel_options()]
        )

    def sibling(self: C) -> C:
        """Another client of the same server and options: what is kept is shared, the connection is not."""
        other = copy.copy(self)
        other.closed = False
        other._connect()
        return other

    def attempts(self, call: Call) -> Attempts:
        """Of a call that starts now."""
        self.check_open()
        retry = self.retry if call.retries else dataclasses.replace(self.retry, attempts=1)
        return Attempts(retry, self.clock, self.deadline + call.wait)

    def metadata(self) -> list[tuple[str, str]]:
        """What a call brings beside its request: the token, if there is one."""
        return [("authorization", f"Bearer {read_token(self.token_file)}")] if self.token_file else []

    def clear_cache(self) -> None:
        """Forgets every cached answer."""
        self.lookup.cache.clear()

    def __repr__(self) -> str:
        return f"{type(self).__module__}.{type(self).__name__}({self.server!r})"


def channel_options(retry: RetryPolicy) -> list[tuple[str, Any]]:
    """gRPC itself waits before it connects again after a failure; that wait must not swallow the retries'."""
    return [
        ("grpc.initial_reconnect_backoff_ms", max(20, round(retry.initial_wait * 1000))),
        ("grpc.max_reconnect_backoff_ms", max(100, round(retry.longest_wait * 1000))),
        ("grpc.enable_retries", 0),
        # A connection that is silently lost: what is sent and not acknowledged for so long ends it (TCP_USER_TIMEOUT,
        # which gRPC sets where there are pings). A server that is not told otherwise closes the connections of clients
        # that ping it more often than every 5 minutes.
        ("grpc.keepalive_time_ms", 310_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.max_receive_message_length", _LARGEST_MESSAGE_BYTES),
    ]


def stubs(channel: Any) -> dict[str, Any]:
    """Every method of the services, callable on `channel`."""
    return {name: method.stub(channel) for name, method in api.METHODS.items()}


def described(method: Callable, builder: Callable, returns: str = "") -> Callable:
    """`method` with the name, the words and the arguments of the plan that it carries out, and what it returns."""
    signature = inspect.signature(builder)
    returns = returns or signature.return_annotation.removeprefix("Plan[").removesuffix("]")
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__name__ = builder.__name__
    method.__doc__ = builder.__doc__
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[itself, *signature.parameters.values()], return_annotation=returns
    )
    return method


def _checked(name: str, server: str) -> str:
    if not isinstance(server, str):
        raise InvalidArgument(f"{name} is {server!r}; it must be a str")
    host, colon, port = server.rpartition(":")
    if server.startswith("unix:") and len(server) > len("unix:"):
        return server
    if colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65536:
        return server
    allowed = "host:port with a port of 1..65535, or unix:/path"
    if is_name(server):  # and there is no file that says so
        file = path_in(os.environ)
        allowed += (
            f", or a name in {file}, which does not exist" if file else ", or a name, if $HOME is set (docs/cli.md)"
        )
    raise InvalidArgument(f"{name} is '{server}'; it must be {allowed}")
