"""Planted bugs apply to the sources as they are, and change what is compiled.

Compiles (where the host has NVRTC) as many of them as TIME allows, others each time the kernels change; all of them
with ATTUNE_ALL_PLANTED=1.
"""

import functools
import hashlib
import multiprocessing
import os
import pathlib
import random
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import nvrtc
import planted
from grid import bench_grid
from planted_all import ALL
from suite import EIGHT_BIT, EXHAUSTIVE, FEATURES, HOPPER, MMA, SAMPLED

TIME = 40  # seconds of compiling


def architecture(mutant):
    return "90a" if mutant.family == "attention_hopper" else "89"


def compiled(root, folder, target, defines):
    source = planted.source_of(root, folder)
    return nvrtc.ptx(source, [source.parent, root], dict(defines), target)


@functools.cache
def compiled_as_it_is(root, family, target, defines):
    return compiled(root, family, target, defines)


def complaint(mutant):
    """What is wrong with a mutant's code; empty when it differs from that of the family as it is."""
    defines = planted.code_defines(mutant)
    honest = {**defines, **{name: value for name, value in mutant.honest.items() if name in defines}}
    target = architecture(mutant)
    with tempfile.TemporaryDirectory() as directory:
        root = planted.write(mutant, pathlib.Path(directory))
        try:
            bad = compiled(root, mutant.folder, target, defines)
            good = compiled_as_it_is(mutant.root, mutant.family, target, tuple(honest.items()))
        except ValueError as error:
            return f"{mutant.folder}: {error}"
    return f"{mutant.folder}: the code is the same" if bad == good else ""


def order():
    """Another one whenever a kernel changes."""
    text = b"".join(path.read_bytes() for path in sorted(planted.KERNELS.rglob("*.cu*")))
    shuffled = list(ALL)
    random.Random(hashlib.sha256(text).hexdigest()).shuffle(shuffled)
    return shuffled


class Planted(unittest.TestCase):
    def test_each_has_a_name_of_its_own(self):
        folders = [mutant.folder for mutant in ALL]
        self.assertEqual(len(folders), len(set(folders)))

    def test_there_are_enough(self):
        bugs = [mutant for mutant in ALL if mutant.kind != "cheat"]
        self.assertGreaterEqual(len(bugs), 40)
        self.assertGreaterEqual(sum(mutant.family == "attention_mma" for mutant in bugs), 30)

    def test_each_applies_to_the_sources_as_they_are(self):
        for mutant in ALL:
            with self.subTest(mutant.folder), tempfile.TemporaryDirectory() as directory:
                root = planted.write(mutant, pathlib.Path(directory))
                self.assertIn(f'name: "{mutant.folder}"', (root / mutant.folder / "family.textproto").read_text())
                planted.code_defines(mutant)  # names parameters that there are

    def test_a_scrub_comes_to_the_bug(self):
        mutant = planted.scrubbed(next(each for each in ALL if each.kind == "race" and each.file == "attention_mma.cu"))
        with tempfile.TemporaryDirectory() as directory:
            root = planted.write(mutant, pathlib.Path(directory))
            text = planted.source_of(root, mutant.folder).read_text()
        self.assertIn(planted.SHARED + planted.SCRUB, text)
        self.assertNotIn(mutant.old, text)

    def test_a_piece_that_is_gone_or_there_twice_is_an_error(self):
        mutant = next(mutant for mutant in ALL if mutant.old)
        for text in ("", mutant.old + mutant.old):
            with self.assertRaisesRegex(ValueError, "times"):
                planted.changed(mutant, text)

    def test_a_line_that_is_no_bugs_is_an_error(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "bugs.txt"
            for line in ("name file.cuh NOWHERE ROWS", "name file.cuh PLAIN", "- nobody's"):
                path.write_text(f"family attention_mma\n\n== mask\n\n{line}\n")
                with self.subTest(line), self.assertRaisesRegex(ValueError, "bugs.txt:5: "):
                    planted.read(path)

    def test_problems_are_the_benchs_or_the_suites(self):
        known = {*bench_grid(), *EXHAUSTIVE, *SAMPLED, *MMA, *FEATURES, *EIGHT_BIT, *HOPPER}
        known.add("b1.h1.q64.d64.f16")  # the adversarial families'
        self.assertEqual({mutant.problem for mutant in ALL} - known, set())

    @unittest.skipUnless(nvrtc.library(), "no NVRTC on this host")
    def test_each_changes_what_is_compiled(self):
        all_of_them = bool(os.environ.get("ATTUNE_ALL_PLANTED"))
        end = time.monotonic() + TIME
        done, complaints = 0, []
        with multiprocessing.get_context("fork").Pool() as pool:
            for found in pool.imap(complaint, order()):
                complaints += [found] if found else []
                done += 1
                if not all_of_them and time.monotonic() > end:
                    break
            pool.terminate()
        print(f"{done} of {len(ALL)} compiled", file=sys.stderr)
        self.assertGreater(done, 0)
        self.assertEqual(complaints, [])


if __name__ == "__main__":
    unittest.main()
