#!/usr/bin/env python3
"""Writes man pages and completion scripts from what the programs say of themselves.

    manual.py ATTUNE ATTUNED DIRECTORY

DIRECTORY/man has attune(1), a page for each command, and attuned(8), compressed; DIRECTORY/completions has the scripts
below the paths where shells look for them in /usr/share.
"""

import gzip
import pathlib
import re
import subprocess
import sys

COMPLETIONS = {
    "bash": "bash-completion/completions/attune",
    "zsh": "zsh/vendor-completions/_attune",
    "fish": "fish/vendor_completions.d/attune.fish",
}
HEADING = re.compile(r"(Usage|Positionals|Options|Options of every command|Subcommands|Examples):(?: (.*))?")
NAMES = 28  # columns of names in `attune --help`, left of what they mean


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def escaped(text):
    """Text that groff prints as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def page(name, section, version, summary, parts):
    """A man page of (heading, roff) parts."""
    title = f'.TH "{name.upper()}" {section} "" "attune {version}" "attune"'
    lines = [title, ".SH NAME", f"{escaped(name)} \\- {escaped(summary)}"]
    for heading, body in parts:
        lines += [f".SH {heading.upper()}", body]
    return "\n".join(lines) + "\n"


def items(lines):
    """Roff of a list of names, each with what it means from column NAMES on."""
    roff = []
    for line in lines:
        name, text = line[:NAMES].strip(), line[NAMES:].strip()
        if line.startswith("  ") and not line.startswith(" " * NAMES):
            if len(line) > NAMES and line[NAMES - 1] != " ":  # a name longer than its columns stands alone
                name, text = line.strip(), ""
            roff += [".TP", f"\\fB{escaped(name)}\\fR"]
        if text:
            roff.append(escaped(text))
    return "\n".join(roff)


def sections(help_text):
    """What stands before the first heading, and the lines below each heading."""
    intro, found = [], {}
    into = intro
    for line in help_text.splitlines():
        if heading := HEADING.fullmatch(line):
            into = found.setdefault(heading[1], [heading[2]] if heading[2] else [])
        elif line.strip():
            into.append(line)
    return intro, found


def command_page(name, version, help_text, see_also):
    intro, found = sections(help_text)
    summary = " ".join(intro).removeprefix(f"{name} ")
    parts = [("Synopsis", escaped(" ".join(line.strip() for line in found.pop("Usage"))))]
    examples = found.pop("Examples", [])
    parts += [(heading, items(lines)) for heading, lines in found.items()]
    if examples:
        parts.append(("Examples", ".nf\n" + escaped("\n".join(examples)) + "\n.fi"))
    parts.append(("See also", see_also))
    return page(name, 1, version, summary[0].lower() + summary[1:].rstrip("."), parts)


def commands(help_text):
    return [line.split()[0] for line in sections(help_text)[1]["Subcommands"] if re.match(r"  \w", line)]


def daemon_page(version, help_text):
    """abseil lists flags as `--name (what it does); default: value;`, wrapped."""
    usage, _, flags = help_text.partition("\n\n")
    first, *lines = usage.splitlines()
    synopsis = ".nf\n" + escaped("\n".join(line.strip() for line in lines if line.startswith("  "))) + "\n.fi"
    rest = " ".join(line for line in lines if not line.startswith("  "))
    roff = []
    for entry in re.split(r"\n    (?=--)", flags)[1:]:
        text = " ".join(entry.split("\n\n")[0].split())
        name, what, default = re.fullmatch(r"(--\w+) \((.*)\);? default: (.*?);?", text).groups()
        roff += [".TP", f"\\fB{escaped(name)}\\fR", escaped(f"{what} (default: {default or 'none'})")]
    files = [(".TP\n\\fB/etc/attune/attuned.flags\\fR", "flags of the service, one a line")]
    files += [(".TP\n\\fB/var/lib/attune\\fR", "the store"), (".TP\n\\fB/run/attune/attuned.sock\\fR", "its socket")]
    parts = [
        ("Synopsis", synopsis),
        ("Description", escaped(rest)),
        ("Flags", "\n".join(roff)),
        ("Files", "\n".join(f"{name}\n{escaped(what)}" for name, what in files)),
        ("See also", "\\fBattune\\fR(1); /usr/share/doc/attune"),
    ]
    return page("attuned", 8, version, first.partition(": ")[2].rstrip("."), parts)


def pages(attune, attuned):
    """File name and text of each page."""
    version = output(attune, "--version").split()[1]
    top = output(attune, "--help")
    names = commands(top)
    also = ", ".join(f"\\fBattune\\-{name}\\fR(1)" for name in names)
    yield "attune.1", command_page("attune", version, top, f"{also}, \\fBattuned\\fR(8); /usr/share/doc/attune")
    for name in names:
        text = output(attune, name, "--help")
        yield f"attune-{name}.1", command_page(f"attune-{name}", version, text, "\\fBattune\\fR(1)")
    # --help ends with 1 under abseil
    text = subprocess.run([attuned, "--help"], capture_output=True, text=True).stdout
    yield "attuned.8", daemon_page(version, text)


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def main(attune, attuned, directory):
    for name, text in pages(attune, attuned):
        compressed = gzip.compress(text.encode(), compresslevel=9, mtime=0)
        write(directory / "man" / f"man{name[-1]}" / f"{name}.gz", compressed)
    for shell, path in COMPLETIONS.items():
        write(directory / "completions" / path, output(attune, "completion", shell).encode())


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]))
