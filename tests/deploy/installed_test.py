"""What `cmake --install` installs: programs that find their files, man pages of every command and flag, and a C++
library that a project outside of the tree finds and builds with."""

import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["ATTUNE_BUILD"])
PROBLEM = "b1.h1.q16.d32.f16"
sys.path.insert(0, str(ROOT / "tests/e2e"))


def run(*command, **options):
    return subprocess.run([*map(str, command)], check=True, capture_output=True, text=True, **options).stdout


class InstalledTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.prefix = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        for component in ("daemon", "dev"):
            run("cmake", "--install", BUILD, "--prefix", cls.prefix, "--component", component)

    def daemon(self):
        """A daemon from the prefix, given nothing but its directories; its address."""
        directory = self.enterContext(tempfile.TemporaryDirectory())
        address = f"unix:{directory}/attuned.sock"
        log = pathlib.Path(directory, "log")
        flags = [f"--listen={address}", f"--data_dir={directory}/data", f"--lock_dir={directory}/locks"]
        with log.open("w") as file:
            daemon = subprocess.Popen([self.prefix / "bin/attuned", *flags], stderr=file)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.terminate)
        self.addCleanup(lambda: self._outcome.success or sys.stderr.write(log.read_text()))
        for _ in range(600):
            if " serving " in log.read_text():
                return address
            if daemon.poll() is not None:
                break
            subprocess.run(["sleep", "0.1"])
        self.fail(log.read_text())
        return None

    def test_a_project_outside_of_the_tree_gets_an_answer(self):
        address = self.daemon()
        build = self.enterContext(tempfile.TemporaryDirectory())
        example = self.prefix / "share/doc/libattune-dev/examples"
        run("cmake", "-G", "Ninja", "-S", example, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("ninja", "-C", build)
        said = run(f"{build}/best", PROBLEM, address)
        answer = run(self.prefix / "bin/attune", "--server", address, "best", PROBLEM)
        self.assertTrue(said.startswith("attention_opencl:"), said)
        self.assertIn(said.splitlines()[0], answer)

    def test_pkg_config_names_every_library(self):
        folder = next(self.prefix.glob("lib/**/pkgconfig"))
        environment = {**os.environ, "PKG_CONFIG_PATH": str(folder)}
        libraries = {path.name for path in folder.parent.glob("*.a")}
        named = run("pkg-config", "--libs", "attune-launch", env=environment).split()
        self.assertEqual(libraries, {f"lib{name[2:]}.a" for name in named if name.startswith("-lattune")})

    def test_public_headers_include_only_what_is_installed(self):
        include = self.prefix / "include/attune"
        for header in include.rglob("*.h"):
            for name in re.findall(
                r'^#include "((?:client|proto|server|attune|google/rpc)/.*)"', header.read_text(), re.M
            ):
                self.assertTrue((include / name).is_file(), f"{header} includes {name}")


class ManualTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        programs = (BUILD / "bin/attune", BUILD / "bin/attuned")
        run(sys.executable, ROOT / "deploy/packages/manual.py", *programs, cls.directory)

    def page(self, name):
        text = gzip.decompress((self.directory / f"man/man{name[-1]}/{name}.gz").read_bytes()).decode()
        return text.replace("\\-", "-").replace("\\e", "\\")

    def test_every_command_has_a_page_with_all_of_its_options(self):
        listed = run(BUILD / "bin/attune", "--help").split("Subcommands:")[1].split("Examples:")[0]
        commands = re.findall(r"^  ([a-z]+) ", listed, re.M)
        self.assertGreater(len(commands), 20)
        for command in commands:
            page = self.page(f"attune-{command}.1")
            self.assertIn(f"attune-{command}", self.page("attune.1"))
            for option in re.findall(r"^  (?:-\w,)?(--[a-z-]+)", run(BUILD / "bin/attune", command, "--help"), re.M):
                self.assertRegex(page, rf"(?m)^\\fB(-\w,)?{option}\b")

    def test_the_daemons_page_has_every_flag(self):
        flags = re.findall(r"^ABSL_FLAG\(\s*[^,]+,\s*(\w+)", (ROOT / "server/daemon/flags.cc").read_text(), re.M)
        self.assertGreater(len(flags), 30)
        for flag in flags:
            self.assertIn(f"\n\\fB--{flag}\\fR\n", self.page("attuned.8"))

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_groff_has_nothing_to_say(self):
        for path in self.directory.glob("man/*/*.gz"):
            result = subprocess.run(
                ["groff", "-man", "-Tutf8", "-ww", "-z"], input=gzip.decompress(path.read_bytes()), capture_output=True
            )
            self.assertEqual(result.stderr.decode(), "", path)

    def test_completions_lie_where_shells_look(self):
        for path in ("bash-completion/completions/attune", "zsh/vendor-completions/_attune"):
            self.assertIn("rollback", (self.directory / "completions" / path).read_text())


if __name__ == "__main__":
    unittest.main()
