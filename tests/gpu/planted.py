"""Planted bugs: a piece of a family's text, what takes its place, and where the daemon's checks must find it.

A mutant is a family of its own, the folder of the original with its name changed, in a directory with a copy of the
folder common: a daemon takes any number of them beside the families as they are.

Bugs are read from bugs/*.txt. A file names its family; `== KIND` begins a kind of bugs; a bug is a line with its name,
file (in the family's folder, or common/...), problem and variant (names.txt), then the piece of text, which the file
has exactly once, behind `- `, and what takes its place behind `+ `. `? WHY` says that no check can find it.
"""

import dataclasses
import pathlib
import re
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "kernels_src"
TESTS = ROOT / "tests/families"
BUGS = pathlib.Path(__file__).resolve().parent / "bugs"


EITHER = "either"

# What attention_mma begins with, and a scrub of its dynamic shared memory behind that.
SHARED = "  const unsigned shared = SharedAddress(dynamic);\n"
SCRUB = """  unsigned bytes;
  asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
  const float nan = __int_as_float(0x7fffffff);
  const float nans[4] = {nan, nan, nan, nan};
  for (unsigned at = threadIdx.x * 16; at < bytes; at += kThreads * 16) StoreShared16(shared + at, nans);
  __syncthreads();
"""


@dataclasses.dataclass(frozen=True)
class Mutant:
    kind: str
    name: str  # what it breaks
    family: str
    file: str
    old: str  # empty: the family is taken as it is
    new: str
    problem: str
    variant: dict  # parameters that are not given are the manifest's guess
    missed: str = ""  # not empty: why no check can find it
    honest: dict = dataclasses.field(default_factory=dict)  # what the honest variant has instead; of cheats
    expected: str = ""  # the verdict, where it must be a certain one; EITHER: found or not
    scrubs: bool = False  # the kernel fills its shared memory with NaN first; of attention_mma

    @property
    def folder(self):
        return f"{self.family}_{self.name}"

    @property
    def root(self):
        return KERNELS if (KERNELS / self.family).exists() else TESTS


def names():
    """({name: problem}, {name: variant's parameters}) of names.txt."""
    problems, variants = {}, {}
    for line in (BUGS / "names.txt").read_text().splitlines():
        what, *words = line.partition("#")[0].split() or [""]
        if what == "problem":
            problems[words[0]] = words[1]
        elif what == "variant":
            values = dict(word.split("=") for word in words[1:] if "=" in word)
            parent = variants[words[1]] if "=" not in words[1] else {}
            variants[words[0]] = parent | {name: int(value) for name, value in values.items()}
    return problems, variants


def read(path):
    """The bugs of a file, in its order. ValueError with the line that is no part of one."""
    problems, variants = names()
    family, kind, found = "", "", []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        mark, _, rest = line.partition(" ")
        if not line or mark == "#":
            continue
        if mark == "family":
            family = rest
        elif mark == "==":
            kind = rest
        elif mark in ("?", "-", "+") and found:
            found[-1][mark].append(rest)
        elif len(words := line.split()) == 4 and words[2] in problems and words[3] in variants:
            found.append({"head": (kind, words[0], family, words[1]), "at": words[2:], "?": [], "-": [], "+": []})
        else:
            raise ValueError(f"{path.name}:{number}: not a bug's name, file, problem and variant of names.txt: {line}")
    return [
        Mutant(
            *bug["head"], "\n".join(bug["-"]), "\n".join(bug["+"]), problems[bug["at"][0]], variants[bug["at"][1]],
            " ".join(bug["?"]),
        )
        for bug in found
    ]  # fmt: skip


def manifest(family):
    root = KERNELS if (KERNELS / family).exists() else TESTS
    return (root / family / "family.textproto").read_text()


def parameters(family):
    """{name: (compile-time, guess)} in the manifest's order."""
    found = re.findall(
        r'parameters \{\s*name: "(\w+)".*?binding: BINDING_(COMPILE|LAUNCH)_TIME.*?guess: (-?\d+)',
        manifest(family),
        re.S,
    )
    return {name: (binding == "COMPILE", int(guess)) for name, binding, guess in found}


def complete(family, given):
    """All parameters of a variant: what is not given is the manifest's guess."""
    known = parameters(family)
    if unknown := given.keys() - known.keys():
        raise ValueError(f"{family}: no parameter {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return {name: given.get(name, guess) for name, (_, guess) in known.items()}


def variant_text(folder, family, given):
    return f"{folder}:" + ",".join(f"{name}={value}" for name, value in complete(family, given).items())


def changed(mutant, text):
    """The file's text with the bug; ValueError where the piece is not there exactly once."""
    if not mutant.old:
        return text
    if (count := text.count(mutant.old)) != 1:
        raise ValueError(f"{mutant.family} {mutant.name}: {mutant.file} has {count} times: {mutant.old}")
    return text.replace(mutant.old, mutant.new)


def path_in(root, mutant):
    return root / (mutant.file if mutant.file.startswith("common/") else f"{mutant.folder}/{mutant.file}")


def source_of(root, folder):
    """A family's main source."""
    named = re.search(r'^sources: "([^"]+)"', (root / folder / "family.textproto").read_text(), re.M)
    return root / folder / named.group(1)


def write(mutant, directory):
    """The mutant's directory of families, for --kernels_dir."""
    root = directory / mutant.folder
    shutil.copytree(mutant.root / "common", root / "common")
    shutil.copytree(mutant.root / mutant.family, root / mutant.folder)
    text = root / mutant.folder / "family.textproto"
    text.write_text(text.read_text().replace(f'name: "{mutant.family}"', f'name: "{mutant.folder}"', 1))
    if mutant.old:
        path = path_in(root, mutant)
        path.write_text(changed(mutant, path.read_text()))
    if mutant.scrubs:
        main = source_of(root, mutant.folder)
        text = main.read_text()
        if text.count(SHARED) != 1:
            raise ValueError(f"{mutant.folder}: {main.name} has {text.count(SHARED)} times: {SHARED}")
        main.write_text(text.replace(SHARED, SHARED + SCRUB))
    return root


def scrubbed(mutant):
    """The same bug in a kernel that begins with shared memory full of NaN, as a scrub between runs would leave it."""
    name = f"{mutant.name}_scrubbed"
    return dataclasses.replace(mutant, kind=f"{mutant.kind}, scrubbed", name=name, expected=EITHER, scrubs=True)


def problem_defines(problem):
    """What of a problem's text (docs/problems.md) the code of the attention families depends on."""
    words = problem.split(".")

    def number(prefix):
        return next((int(word[len(prefix) :]) for word in words if re.fullmatch(prefix + r"\d+", word)), 0)

    return {
        "HEAD_DIM": number("d"),
        "IS_BF16": int("bf16" in words),
        "KV_DTYPE": 1 if "kve4m3" in words else 2 if "kve5m2" in words else 0,
        "MASK": 2 if number("window") else int("causal" in words or "causal-br" in words),
        "SOFTCAP": int(number("softcap") > 0),
        "SINKS": int("sinks" in words),
        "VARLEN": int("varlen" in words),
        "PAGE_SIZE": number("page"),
    }


def code_defines(mutant):
    """The definitions that a mutant's code is compiled with: what its manifest defines, and its parameters."""
    of_problem = problem_defines(mutant.problem)
    text = manifest(mutant.family)
    named = set(re.findall(r'defines \{ name: "(\w+)"', text))
    known = parameters(mutant.family)
    values = complete(mutant.family, mutant.variant)
    if "PIECE" in named:  # keys of one copy; attention_hopper
        page = of_problem["PAGE_SIZE"]
        of_problem["PIECE"] = min(page, values["BLOCK_N"]) if page else values["BLOCK_N"]
    missing = named - of_problem.keys()
    if missing:
        raise ValueError(f"{mutant.family} defines {', '.join(sorted(missing))}, which planted.py does not know")
    return {name: of_problem[name] for name in sorted(named)} | {
        name: values[name] for name, (compiled, _) in known.items() if compiled
    }
