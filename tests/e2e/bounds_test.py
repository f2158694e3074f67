"""What a manifest or a caller may ask for is bounded: spaces of a billion variants, hostile calls, mutated requests."""

import pathlib
import shutil
import subprocess
import unittest

from harness import BUILD, KERNELS, TEST_FAMILIES, DaemonTest

PROBLEM = "b1.h1.q16.d64.f16"
REQUESTS = 5000  # mutated; tests/load/attack sends a million


def memory_mib(daemon, line):
    status = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
    return int(status.split(f"{line}:")[1].split()[0]) / 1024


class BoundsTest(DaemonTest):
    def huge_families(self):
        """A working kernel with nine more launch-time parameters of ten values: 10^9 variants. Of huge_opencl no rule
        looks at them, of tangled_opencl one looks at all of them together."""
        root = self.directory / "kernels"
        shutil.copytree(TEST_FAMILIES / "common", root / "common")
        for name, rule in (("huge_opencl", ""), ("tangled_opencl", "A + B + C + D + E + F + G + H + I != 45")):
            shutil.copytree(TEST_FAMILIES / "nondeterministic_opencl", root / name)
            path = root / name / "family.textproto"
            manifest = (
                path.read_text().replace("nondeterministic_opencl", name).replace("values: [0, 1]", "values: [0]")
            )
            for parameter in "ABCDEFGHI":
                manifest += (
                    f'parameters {{ name: "{parameter}" binding: BINDING_LAUNCH_TIME '
                    "values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] guess: 5 }\n"
                )
            if rule:
                manifest += f'constraints {{ expr: "{rule}" reason: "not 45" }}\n'
            path.write_text(manifest + "guess_precedence: 100\n")
        return root

    def test_a_billion_variants_are_counted_drawn_from_and_guessed_not_listed(self):
        daemon = self.daemon(kernels=[KERNELS, self.huge_families()])
        [space] = daemon.json("space", PROBLEM, "--family", "huge_opencl")
        [family] = space["families"]
        self.assertEqual((family["variants"], family["lower_bound"], family["compiles"]), (10**9, False, None))
        self.assertIn("huge_opencl has 1000000000 variants", space["warnings"][0])
        [space] = daemon.json("space", PROBLEM, "--family", "tangled_opencl")
        self.assertTrue(space["families"][0]["lower_bound"])

        self.assertEqual(daemon.json("best", PROBLEM)[0]["family"], "huge_opencl")

        # A problem each: --max-trials counts an incumbent of the other family, too, when it is drawn.
        for family, problem in (("huge_opencl", PROBLEM), ("tangled_opencl", "b1.h1.q17.d32.f16")):
            refused = daemon.attune("tune", problem, "--family", family, "--strategy=exhaustive", check=False)
            self.assertEqual(refused.returncode, 6, refused.stderr)
            self.assertIn("have another strategy draw from them (--strategy guided)", refused.stderr)
            daemon.attune("tune", problem, "--family", family, "--strategy", "random", "--max-trials", "2")
            trials = daemon.trials(problem, "--family", family)
            self.assertEqual({trial["verdict"] for trial in trials}, {"OK"})
            self.assertGreaterEqual(len(trials), 2)
        self.assertLess(memory_mib(daemon, "VmHWM"), 300)
        daemon.stop()

    def attack(self, tool, *flags):
        daemon = self.daemon()
        result = subprocess.run(
            [BUILD / "tests/load" / tool, f"--server={daemon.address}", f"--pid={daemon.process.pid}", *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.assertEqual(result.returncode, 0, f"{result.stdout}\ndaemon:\n{daemon.log[-10000:]}")
        for character in daemon.log:
            self.assertTrue(character.isprintable() or character == "\n", ascii(character))
        return daemon

    def test_hostile_calls_are_refused_and_harm_nobody(self):
        daemon = self.attack("hostile_calls")
        listed = daemon.attune("baseline", PROBLEM).stdout
        self.assertIn("\\x1b]0;pwned", listed)
        self.assertNotIn("\x1b", listed)
        # A thousand requests that libprotobuf cannot read: it complains in the daemon's log, which thins that out.
        self.assertNotIn("[libprotobuf", daemon.log)
        self.assertIn(" error protobuf message=", daemon.log)
        self.assertLess(daemon.log.count(" error protobuf "), 600)
        daemon.stop()

    def test_mutated_requests_are_answered(self):
        self.attack("fuzz_requests", f"--count={REQUESTS}").stop()


if __name__ == "__main__":
    unittest.main()
