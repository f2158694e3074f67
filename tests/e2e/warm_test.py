"""The code of a shape that nobody tuned: asked for, compiled in the background, there after a kill."""

import unittest

from harness import DaemonTest

PROBLEM = "b1.h1.q64.d64.f16"


class WarmTest(DaemonTest):
    def test_what_nobody_tuned_gets_its_code_although_the_daemon_is_killed_meanwhile(self):
        daemon = self.daemon()
        first = daemon.json("best", PROBLEM)[0]
        self.assertEqual((first["provenance"], first["artifact_state"]), ("HEURISTIC", "COMPILING"))
        daemon.kill()
        daemon.start()
        warmed = daemon.json("warm", PROBLEM, PROBLEM + ".causal")
        self.assertEqual([row["artifact_state"] for row in warmed], ["READY", "READY"])
        daemon.kill()
        daemon.start()
        code = self.directory / "code"
        again = daemon.json("best", PROBLEM, "--artifact", str(code))[0]
        self.assertEqual(again["variant"], warmed[0]["variant"])
        self.assertEqual((again["artifact_state"], again["artifact_sha256"]), ("READY", warmed[0]["artifact_sha256"]))
        self.assertGreater(code.stat().st_size, 0)
        self.assertEqual(daemon.json("best", PROBLEM, "--wait", "60s")[0]["artifact_state"], "READY")
        daemon.stop()
        # With it switched off, a look-up starts nothing.
        daemon.flags.append("--on_miss=off")
        daemon.start()
        self.assertEqual(daemon.json("best", PROBLEM, "--artifact", str(code))[0]["artifact_state"], "READY")
        refused = daemon.attune("best", "b1.h1.q64.d32.f16", "--artifact", str(code), check=False)
        self.assertEqual(refused.returncode, 3)
        self.assertIn("only to tune", refused.stderr)
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
