"""The token that a client's calls bring, and over which connections it may. The C++ client has the same rules
(tests/golden/token.json).
"""

from __future__ import annotations

import pathlib

from attune.errors import InvalidArgument


def token_in(contents: str, path: str) -> str:
    """What a file holds, without the white space around it: a line of printable ASCII without a space."""
    token = contents.strip(" \t\r\n\v\f")
    if token and all("!" <= character <= "~" for character in token):
        return token
    what = "does not hold one line with a token" if token else "is empty"
    raise InvalidArgument(f"the token file {path} {what}; `attune token create` prints one")


def read_token(path: str) -> str:
    """The token in the file at `path`; InvalidArgument when there is none, or the file cannot be read."""
    try:
        contents = pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InvalidArgument(f"the token file {path} cannot be read: {error.strerror}") from None
    return token_in(contents, path)


def is_local(server: str) -> bool:
    """Whether a connection to `server` stays on this host: a Unix socket, or a loopback address."""
    host = server.rpartition(":")[0]
    # A name may begin with "127.", too, and is then of any host.
    number = all(character in "0123456789." for character in host)
    return server.startswith("unix:") or host in ("localhost", "[::1]") or (number and host.startswith("127."))
