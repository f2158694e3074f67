"""How a client's connection is encrypted. The C++ client has the same rules (tests/golden/tls.json)."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import ssl
from collections.abc import Mapping

import grpc

from attune.errors import InvalidArgument
from attune.token import is_local


@dataclasses.dataclass(frozen=True)
class Tls:
    """Paths of PEM files, and what else is asked for; empty: nothing is."""

    ca: str = ""
    cert: str = ""
    key: str = ""
    server_name: str = ""
    insecure: bool = False

    @classmethod
    def chosen(cls, environment: Mapping[str, str], *, insecure: bool, **options: str | os.PathLike[str] | None) -> Tls:
        """What the options say, and the environment of those that say nothing. InvalidArgument names the option."""
        given = {name: os.fspath(value) for name, value in options.items() if value}
        if insecure:
            if given:
                raise InvalidArgument("insecure is set together with other TLS options; allowed: one or the other")
            return cls(insecure=True)
        named = {name: given.get(name) or environment.get(f"ATTUNE_TLS_{name.upper()}", "") for name in options}
        tls = cls(**named)
        tls._check()
        return tls

    def encrypts(self, server: str) -> bool:
        """TCP to other hosts, and to this one where anything asks for it; never Unix sockets."""
        if server.startswith("unix:") or self.insecure:
            return False
        return not is_local(server) or self != Tls()

    def credentials(self) -> grpc.ChannelCredentials:
        """Of the files as they are now."""
        ca, key, cert = (_read(*named) or None for named in (("ca", self.ca), ("key", self.key), ("cert", self.cert)))
        return grpc.ssl_channel_credentials(root_certificates=ca, private_key=key, certificate_chain=cert)

    def channel_options(self) -> list[tuple[str, str]]:
        """For gRPC, beside the credentials."""
        return [("grpc.ssl_target_name_override", self.server_name)] if self.server_name else []

    def _check(self) -> None:
        for name in ("ca", "cert", "key"):
            _read(name, getattr(self, name))
        if bool(self.cert) != bool(self.key):
            raise InvalidArgument(f"tls_cert is '{self.cert}' and tls_key is '{self.key}'; allowed: both or neither")
        try:
            if self.ca:
                ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(self.ca)
        except ssl.SSLError:
            raise InvalidArgument(f"tls_ca is '{self.ca}', which holds no certificate in PEM") from None
        try:
            if self.cert:
                # The password is never asked for.
                ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(self.cert, self.key, password="")
        except ssl.SSLError as error:
            raise InvalidArgument(
                f"tls_cert is '{self.cert}' and tls_key is '{self.key}', which are no certificate and its unencrypted "
                f"private key in PEM ({error.reason})"
            ) from None


def _read(name: str, path: str) -> bytes:
    if not path:
        return b""
    try:
        return pathlib.Path(path).read_bytes()
    except OSError as error:
        raise InvalidArgument(f"tls_{name} is '{path}', which cannot be read: {error.strerror}") from None
