"""Servers that the user has named in a file, each with how it is reached. `attune`, the command, has the same rules
(tests/golden/named_servers.json)."""

from __future__ import annotations

import os
import pathlib
import re
from collections.abc import Mapping

from attune.errors import InvalidArgument

_PATHS = ("token_file", "tls_ca", "tls_cert", "tls_key")  # relative ones are of the file's folder
_KEYS = ("server", *_PATHS, "tls_server_name")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_SPACE = " \t\r"


def is_name(server: str) -> bool:
    """Whether it may be a name: it is no address then."""
    return _NAME.fullmatch(server) is not None


def path_in(environ: Mapping[str, str]) -> str:
    """Of the file: $XDG_CONFIG_HOME/attune/servers, else ~/.config/attune/servers; empty without a home."""
    base = environ.get("XDG_CONFIG_HOME", "")
    if base.startswith("/"):  # https://specifications.freedesktop.org/basedir-spec: others are to be ignored
        return f"{base}/attune/servers"
    home = environ.get("HOME", "")
    return f"{home}/.config/attune/servers" if home else ""


def environment_for(server: str, environ: Mapping[str, str]) -> Mapping[str, str]:
    """`environ`, with what the file says of `server` where that is a name, in place of the variables that say so
    otherwise. $ATTUNE_TOKEN_FILE is not among those that count for what the file leaves out: its token may be another
    server's, which this one is not to learn. Where there is no file, no server has a name."""
    path = path_in(environ)
    if not is_name(server) or not os.path.exists(path):
        return environ
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InvalidArgument(f"the servers' file {path} cannot be read: {error.strerror}") from None
    return {**environ, "ATTUNE_TOKEN_FILE": "", **named_server(text, path, server)}


def named_server(text: str, path: str, name: str) -> dict[str, str]:
    """What `text`, the file at `path`, says of `name`: by environment variable. Checks the whole file."""
    servers: dict[str, dict[str, str]] = {}
    section = None
    for number, line in enumerate(text.split("\n"), start=1):
        where, line = f"{path}:{number}", line.strip(_SPACE)
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
            if not is_name(section):
                raise InvalidArgument(
                    f"{where}: the name is '{section}'; it must have letters, digits, '-', '_' and '.' alone"
                )
            if section in servers:
                raise InvalidArgument(f"{where}: [{section}] stands there twice")
            servers[section] = {}
            continue
        key, equals, value = (part.strip(_SPACE) for part in line.partition("="))
        if not equals or line.startswith("["):
            raise InvalidArgument(f"{where}: '{line}'; it must be a comment (#), [name] or key = value")
        if section is None:
            raise InvalidArgument(f"{where}: '{key}' stands before the first [name]")
        _add(servers[section], where, key, value, os.path.dirname(path))
    for section, found in servers.items():
        if "ATTUNE_SERVER" not in found:
            raise InvalidArgument(f"{path}: [{section}] has no server")
    if name not in servers:
        known = f": {', '.join(sorted(servers))}" if servers else ", which has none"
        raise InvalidArgument(f"the server is '{name}'; it must be host:port, unix:/path, or a name in {path}{known}")
    return servers[name]


def _add(found: dict[str, str], where: str, key: str, value: str, folder: str) -> None:
    if key not in _KEYS:
        raise InvalidArgument(f"{where}: the key is '{key}'; it must be {', '.join(_KEYS[:-1])} or {_KEYS[-1]}")
    variable = f"ATTUNE_{key.upper()}"
    if variable in found:
        raise InvalidArgument(f"{where}: {key} stands there twice")
    if not value:
        raise InvalidArgument(f"{where}: {key} is empty")
    if key == "server" and ":" not in value:
        raise InvalidArgument(f"{where}: server is '{value}'; it must be host:port or unix:/path")
    found[variable] = f"{folder}/{value}" if key in _PATHS and not value.startswith("/") else value
