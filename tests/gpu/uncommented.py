"""Sources without what no compiler sees: comments, empty lines, and space at the ends of lines."""

import re

# Literals are kept as they are, also with what looks like a comment in them. An apostrophe behind a digit separates
# digits.
_C = re.compile(
    r"""(?P<kept> R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)" | "(?:\\.|[^"\\\n])*" | (?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+' )
      | //(?:\\\n|[^\n])* | /\*.*?\*/""",
    re.X | re.S,
)
_TEXTPROTO = re.compile(r"""(?P<kept> "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' ) | \#[^\n]*""", re.X)

_LANGUAGES = {".cc": _C, ".h": _C, ".cu": _C, ".cuh": _C, ".textproto": _TEXTPROTO}


def uncommented(text, suffix):
    """`text` of a file whose name ends in `suffix`; as it is where that is no language known here."""
    pattern = _LANGUAGES.get(suffix)
    if pattern is None:
        return text
    bare = pattern.sub(lambda found: found["kept"] or " ", text)
    return "".join(f"{line}\n" for line in map(str.rstrip, bare.splitlines()) if line)
