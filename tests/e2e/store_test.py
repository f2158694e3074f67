"""What becomes of the store's files under a running daemon, or between two: nothing is lost silently."""

import hashlib
import os
import shutil
import sqlite3
import unittest

from harness import KERNELS, TEST_FAMILIES, DaemonTest, holds

PROBLEM = "b1.h1.q16.d16.f16"
OTHER = "b1.h1.q17.d16.f16"
FAMILY = ("--family", "slowable_opencl")  # two variants


class StoreTest(DaemonTest):
    def setUp(self):
        super().setUp()
        self.d = self.daemon(kernels=[KERNELS, TEST_FAMILIES])
        self.d.attune("tune", PROBLEM, *FAMILY)

    def served(self, problem):
        return self.d.json("best", problem)[0]["provenance"] in ("EXACT", "TIE")


class DatabaseFileTest(StoreTest):
    def test_a_database_that_is_cut_takes_no_writes(self):
        os.truncate(self.d.data / "attune.db", 0)
        refused = self.d.attune("tune", OTHER, *FAMILY, check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("attune.db was cut", refused.stdout + refused.stderr)
        self.assertIn("the database is not in its place", self.d.log)
        self.assertEqual(self.d.json("best", PROBLEM)[0]["problem"], PROBLEM)
        self.d.kill()

    def test_a_database_that_is_moved_takes_no_writes_until_it_is_back(self):
        away = self.directory / "away.db"
        (self.d.data / "attune.db").rename(away)
        for _ in range(2):
            refused = self.d.attune("tune", OTHER, *FAMILY, check=False)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("attune.db was moved or removed", refused.stdout + refused.stderr)
        self.assertTrue(self.served(PROBLEM), "from memory")
        self.assertFalse((self.d.data / "attune.db").exists())
        errors = [line for line in self.d.log.splitlines() if " error " in line]
        self.assertEqual(len(errors), 1, errors)
        self.assertIn("error the database is not in its place reason=", errors[0])

        away.rename(self.d.data / "attune.db")
        self.d.attune("tune", OTHER, *FAMILY)
        self.assertIn("info the database is in its place again", self.d.log)
        self.d.stop()
        self.d.start()
        self.assertTrue(self.served(PROBLEM) and self.served(OTHER), "nothing is lost")
        self.d.stop()


class ArtifactTest(StoreTest):
    def fetch(self, check=True):
        """What a client gets: the result, and the artifact's bytes when there are any."""
        path = self.directory / "fetched"
        path.unlink(missing_ok=True)
        result = self.d.attune("--format=json", "best", PROBLEM, "--artifact", str(path), check=check)
        return result, path.read_bytes() if path.exists() else None

    def path_of(self, sha256):
        return self.d.data / "artifacts" / sha256[:2] / sha256

    def expect_lost_and_healed_by_a_tuning(self):
        refused, _ = self.fetch(check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(f"tune {PROBLEM} again: that compiles it again", refused.stderr)
        before = self.d.trials(PROBLEM)
        known = {trial["variant"] for trial in before if holds(trial)}
        self.d.attune("tune", PROBLEM, *FAMILY)
        names = {trial["trial"] for trial in before}
        again = {trial["variant"] for trial in self.d.trials(PROBLEM) if trial["trial"] not in names}
        self.assertFalse(again & known, "tried a second time")
        for _ in range(2):
            result, code = self.fetch()
            # PoCL's bytes are others at each compile, and so is the hash.
            self.assertIn(hashlib.sha256(code).hexdigest(), result.stdout)
            self.d.stop()
            self.d.start()
        self.d.stop()

    def test_a_damaged_artifact_is_never_handed_out_and_compiled_again(self):
        best = self.d.json("best", PROBLEM)[0]
        path = self.path_of(best["artifact_sha256"])
        code = bytearray(path.read_bytes())
        code[len(code) // 2] ^= 1
        path.chmod(0o644)
        path.write_bytes(code)
        self.expect_lost_and_healed_by_a_tuning()

    def test_artifacts_that_are_gone_are_compiled_again(self):
        shutil.rmtree(self.d.data / "artifacts")
        self.expect_lost_and_healed_by_a_tuning()


class DamagedRowsTest(StoreTest):
    DETAIL = 8  # attune.v1.Trial.detail

    def change(self, sql, *values):
        """With the daemon stopped, as nobody else may open its database. Returns what the statement gives."""
        self.d.stop()
        database = sqlite3.connect(self.d.data / "attune.db")
        with database:
            rows = database.execute(sql, values).fetchall()
        database.close()
        self.d.start()
        return rows

    def test_a_damaged_trial_is_shown_as_such_and_tried_again(self):
        first, second = sorted(self.d.trials(PROBLEM), key=lambda trial: int(trial["trial"].split("/")[1]))
        served = self.d.json("best", PROBLEM)[0]["variant"]
        damaged, whole = (first, second) if first["variant"] != served else (second, first)
        number = int(damaged["trial"].split("/")[1])
        self.change("UPDATE trial_bodies SET message = x'0aff' WHERE trial_id = ?", number)

        listed = {trial["trial"]: trial for trial in self.d.trials(PROBLEM)}
        self.assertEqual(set(listed), {first["trial"], second["trial"]}, "the list goes on after it")
        self.assertEqual(listed[damaged["trial"]]["verdict"], "LOST")
        self.assertIn("the stored trial is damaged", listed[damaged["trial"]]["detail"])
        self.assertEqual(listed[whole["trial"]]["verdict"], "OK")
        self.assertIn(f"error a stored row is damaged table=trials row={number}", self.d.log)

        self.d.attune("tune", PROBLEM, *FAMILY)
        again = [trial for trial in self.d.trials(PROBLEM) if trial["variant"] == damaged["variant"]]
        self.assertEqual(sorted(trial["verdict"] for trial in again), ["LOST", "OK"])
        self.d.stop()

    def test_a_damaged_job_is_shown_as_failed(self):
        self.d.attune("tune", OTHER, *FAMILY)
        newest, oldest = self.d.json("jobs")
        self.change("UPDATE jobs SET operation = x'0aff' WHERE name = ?", newest["operation"])
        jobs = self.d.json("jobs")
        self.assertEqual([job["operation"] for job in jobs], [newest["operation"], oldest["operation"]])
        self.assertEqual([job["state"] for job in jobs], ["FAILED", "SUCCEEDED"])
        self.assertTrue(self.served(PROBLEM) and self.served(OTHER))
        self.d.stop()

    def test_a_damaged_incumbent_gives_its_place_to_the_next(self):
        number = int(self.d.json("best", PROBLEM)[0]["trial"].split("/")[1])
        self.change("UPDATE trial_bodies SET message = x'0aff' WHERE trial_id = ?", number)
        self.assertFalse(self.served(PROBLEM))
        self.d.attune("tune", PROBLEM, *FAMILY)
        self.assertTrue(self.served(PROBLEM))
        self.d.stop()

    def test_a_text_that_an_earlier_version_cut_inside_a_character_is_cleaned(self):
        number = int(self.d.trials(PROBLEM)[0]["trial"].split("/")[1])
        text = "café".encode()[:-1]
        # In protobuf's encoding what comes last holds.
        field = bytes([self.DETAIL << 3 | 2, len(text)]) + text
        [[message]] = self.change("SELECT message FROM trial_bodies WHERE trial_id = ?", number)
        self.change("UPDATE trial_bodies SET message = ? WHERE trial_id = ?", message + field, number)
        listed = {trial["trial"]: trial for trial in self.d.trials(PROBLEM)}
        self.assertEqual(len(listed), 2)
        self.assertEqual(listed[f"trials/{number}"]["detail"], "caf\ufffd")
        self.assertEqual(listed[f"trials/{number}"]["verdict"], "OK")
        self.d.stop()


class DetailTest(DaemonTest):
    def test_what_a_compiler_says_is_cut_between_two_characters(self):
        families = self.directory / "families"
        shutil.copytree(TEST_FAMILIES / "common", families / "common")
        for name, before in (("even_opencl", ""), ("odd_opencl", "x")):
            shutil.copytree(TEST_FAMILIES / "compile_error_opencl", families / name)
            manifest = families / name / "family.textproto"
            manifest.write_text(manifest.read_text().replace("compile_error_opencl", name))
            source = families / name / "attention.cl"
            said = "#error " + before + 4000 * "é"
            source.write_text(source.read_text().replace("this line is no statement;", f"\n{said}\n"))
        daemon = self.daemon(kernels=[KERNELS, families])
        daemon.attune("tune", PROBLEM, "--family", "even_opencl", "--family", "odd_opencl")
        said = [trial["detail"] for trial in daemon.trials(PROBLEM, "--verdict", "COMPILE_ERROR")]
        self.assertEqual(len(said), 2)
        for detail in said:
            self.assertIn(1000 * "é", detail)
            self.assertNotIn("\ufffd", detail)
            self.assertLessEqual(len(detail.encode()), 4000)
        self.assertNotEqual(*[len(detail.encode()) for detail in said], "one of them had to be cut earlier")
        self.assertEqual({job["state"] for job in daemon.json("jobs")}, {"SUCCEEDED"})
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
