"""The attacks' kernels compile and hold what they are named for, or fail as expected; what a daemon leaves is seen."""

import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import attacks
import nvrtc
import remains
from attacks_list import ATTACKS, NO_CODE, REFUSED, SUBMITTED
from submit import same

BOMB = 36  # does not end

# What the code of an attack has and that of the honest kernel has not.
INSTRUCTIONS = {
    1: r"nanosleep\.u32",
    2: r"%clock64",
    3: r"(?s)bar\.sync\s+0;.*ld\.volatile\.shared",
    4: r"bar\.sync 1, ",
    5: r"mbarrier\.test_wait",
    6: r"1099511627776;\s[^}]*st\.volatile\.global\.u32",
    7: r"st\.volatile\.global\.u32\s+\[%rd\d+\+1\]",
    8: r"\strap;",
    9: r"__assertfail",
    10: r"alloca\.u64",
    11: r"\.callprototype",
    12: r"st\.volatile\.shared\.u32",
    13: r"st\.volatile\.u32",
    14: r"1094795585",
    15: r"ld\.volatile\.f32",
    16: r"ld\.volatile\.f32",
    17: r"st\.global\.u16\s+\[%rd\d+\+-2\]",
    18: None,  # stores as the honest one's, in a loop
    19: r"vprintf",
    20: r"malloc",
    21: r"\.local .*\[491520\]",
}


def number(attack):
    found = re.fullmatch(r"attacks_cuda:ATTACK=(\d+),LAUNCH=0,TWIN=0", attack.variant)
    return int(found.group(1)) if found else 0


class Kernels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="attacks-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.secret = pathlib.Path(folder.name) / "secret.h"
        cls.secret.write_text(f"{attacks.SECRET}\n")
        cls.root = attacks.write_families(pathlib.Path(folder.name), cls.secret)

    def compiled(self, attack):
        source = self.root / attacks.FAMILY / "attention.cu"
        defines = {"ATTACK": attack, "HEAD_DIM": 64}
        return nvrtc.compiled(source, [self.root, source.parent], defines, "sm_90", ("--ptxas-options=-v",))

    def test_each_is_a_value_of_the_manifest_and_has_a_name_of_its_own(self):
        text = (self.root / attacks.FAMILY / "family.textproto").read_text()
        values = text.partition('"ATTACK"')[2].partition("guess")[0]
        tried = [number(attack) for attack in ATTACKS]
        self.assertEqual({int(value) for value in re.findall(r"\b\d+\b", values.partition("values")[2])}, {0, *tried})
        names = [attack.name for attack in ATTACKS]
        self.assertEqual(len(names), len(set(names)))

    @unittest.skipUnless(nvrtc.library(), "no NVRTC on this host")
    def test_each_has_its_instruction_in_the_code_and_does_not_spill(self):
        _, honest, _ = self.compiled(0)
        for attack, instruction in INSTRUCTIONS.items():
            with self.subTest(attack=attack):
                _, ptx, log = self.compiled(attack)
                self.assertEqual(set(re.findall(r"(\d+) bytes spill", log)), {"0"})
                self.assertFalse(ptx == honest)
                if instruction:
                    self.assertTrue(re.search(instruction, ptx), f"{instruction} is not in the code")
                    self.assertFalse(re.search(instruction, honest), f"{instruction} is in honest code, too")

    @unittest.skipUnless(nvrtc.library(), "no NVRTC on this host")
    def test_the_others_do_not_compile_and_say_why(self):
        failing = {number(a): a for a in ATTACKS if a.verdicts == NO_CODE}
        self.assertEqual({number(attack) for attack in ATTACKS} - {0, BOMB, *failing}, set(INSTRUCTIONS))
        for attack in failing.values():
            with self.subTest(attack.name), self.assertRaisesRegex(ValueError, re.escape(attack.words)):
                self.compiled(number(attack))

    @unittest.skipUnless(nvrtc.library(), "no NVRTC on this host")
    def test_includes_reach_the_secret_where_nothing_is_caged(self):
        for attack in (30, 31, 32):
            with self.subTest(attack=attack), self.assertRaisesRegex(ValueError, attacks.SECRET):
                self.compiled(attack)

    def submission(self, name, change, manifest):
        """Of an author's, without a daemon: (source, manifest)."""
        with tempfile.TemporaryDirectory() as folder:
            author = types.SimpleNamespace(directory=pathlib.Path(folder))
            kernel = attacks.Intruder.kernel(author, name, change, manifest)
            return (kernel / "attention.cu").read_text(), (kernel / "family.textproto").read_text()

    def test_each_submission_is_changed(self):
        source, manifest = self.submission("honest", same, same)
        self.assertIn("values: [0]", manifest)
        for name, change, change_of_manifest, _ in [*REFUSED, *SUBMITTED]:
            with self.subTest(name):
                changed = self.submission(name, change, change_of_manifest)
                self.assertEqual(
                    (changed[0] == source, changed[1] == manifest), (change is same, change_of_manifest is same)
                )
                self.assertNotEqual(changed, (source, manifest))

    @unittest.skipUnless(nvrtc.library(), "no NVRTC on this host")
    def test_submissions_compile_or_do_not(self):
        for name, change, _, verdict in SUBMITTED:
            if name == "template_bomb" or change is same:
                continue
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                source = pathlib.Path(folder) / "attention.cu"
                source.write_text(self.submission(name, change, same)[0])
                defines = {"BAD": 0, "HEAD_DIM": 64}
                if verdict == "COMPILE_ERROR":
                    self.assertRaises(ValueError, nvrtc.compiled, source, [self.root], defines, "sm_90")
                else:
                    nvrtc.compiled(source, [self.root], defines, "sm_90")


class Remains(unittest.TestCase):
    def started(self, *command, **options):
        process = subprocess.Popen(command, text=True, **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_descendants_are_seen_until_they_end(self):
        shell = self.started("sh", "-c", "sleep 600 & echo $!; wait", stdout=subprocess.PIPE)
        with shell.stdout:
            child = int(shell.stdout.readline())
        found = remains.descendants(shell.pid)
        self.assertEqual([each.pid for each in found], [child])
        self.assertEqual(remains.living(found), found)
        subprocess.run(["kill", "-9", str(child)], check=True)
        shell.wait()
        self.assertEqual(remains.living(found), [])

    def test_a_workers_role_is_told_from_its_command(self):
        self.assertEqual(remains.Process(1, 0, 0, "S", ("attune-worker", "--fd=3", "--role=device")).role, "device")
        self.assertEqual(remains.Process(1, 0, 0, "S", ("attuned",)).role, "")

    def test_a_lock_that_somebody_holds_is_named(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for lock in ("held", "free"):
                (folder / lock).touch()
            hold = (
                "import fcntl, sys\nfile = open(sys.argv[1], 'r+b')\n"
                "fcntl.lockf(file, fcntl.LOCK_EX)\nprint(flush=True)\ninput()"
            )
            holder = self.started(
                sys.executable, "-c", hold, str(folder / "held"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            with holder.stdin, holder.stdout:
                holder.stdout.readline()
                self.assertEqual(remains.held_locks(folder), ["held"])
                holder.kill()
                holder.wait()
            self.assertEqual(remains.held_locks(folder), [])

    def test_files_are_those_of_compilers_and_the_driver(self):
        with tempfile.TemporaryDirectory() as name:
            for file in ("tmpxft_0000_1", "cuda.shm.0.1", "somebody's"):
                (pathlib.Path(name) / file).touch()
            found = {pathlib.Path(path).name for path in remains.files([name])}
        self.assertEqual(found, {"tmpxft_0000_1", "cuda.shm.0.1"})


if __name__ == "__main__":
    unittest.main()
