"""A PostgreSQL server of the test's own: in a directory under /tmp, reached by its Unix socket alone. PostgreSQL does
not run as root; for root it runs as postgres, or as nobody."""

import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

PATIENCE = 180


def programs():
    """Where initdb and postgres are; None where no server is installed. Debian keeps them out of PATH."""
    versions = pathlib.Path("/usr/lib/postgresql")
    found = [path for path in versions.glob("*/bin") if (path / "initdb").exists()]
    return max(found, key=lambda path: int(path.parent.name), default=None)


def server_user():
    if os.geteuid() != 0:
        return None
    names = {user.pw_name for user in pwd.getpwall()}
    return pwd.getpwnam("postgres" if "postgres" in names else "nobody")


# A killed process loses nothing that it has written: fsync guards against the machine's death.
OF_TESTS = ("fsync=off", "shared_buffers=32MB")


class PostgresqlServer:
    def __init__(self, settings=OF_TESTS):
        # A socket's path has at most 107 characters, so TMPDIR is not asked.
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="attune_postgresql_", dir="/tmp"))
        user = server_user()
        if user is not None:
            os.chown(self.directory, user.pw_uid, user.pw_gid)
        self._as = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self._settings = [word for setting in settings for word in ("-c", setting)]
        self._process = None
        data = self.directory / "data"
        made = self._run(
            *("initdb", "-D", str(data), "-U", "attune", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        )
        if made.returncode != 0:
            raise AssertionError(made.stderr)
        self.start()

    def _run(self, program, *arguments):
        return subprocess.run(
            [str(programs() / program), *arguments], capture_output=True, text=True, cwd=self.directory, **self._as
        )

    @property
    def target(self):
        return f"postgresql://attune@/postgres?host={self.directory}"

    def start(self):
        end = time.monotonic() + PATIENCE
        while not self._answers_once_started(end):
            # One that was killed may have left processes, which refuse the next until they have ended.
            if time.monotonic() > end:
                raise AssertionError((self.directory / "server.log").read_text())

    def _answers_once_started(self, end):
        """False when the server ended instead."""
        with open(self.directory / "server.log", "a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [
                    *(str(programs() / "postgres"), "-D", str(self.directory / "data"), "-k", str(self.directory)),
                    *("-c", "listen_addresses=", *self._settings),
                ],
                stdout=log,
                stderr=log,
                cwd=self.directory,
                **self._as,
            )
        while self._run("pg_isready", "-h", str(self.directory)).returncode != 0:
            if self._process.poll() is not None:
                return False
            if time.monotonic() > end:
                raise AssertionError((self.directory / "server.log").read_text())
            time.sleep(0.05)
        return True

    @property
    def pid(self):
        """Of its first process, whose children do the work."""
        return self._process.pid

    def kill(self):
        """kill -9 of the postmaster; what it started ends by itself."""
        self._process.kill()
        self._process.wait(PATIENCE)

    def stop(self):
        """At once, as by `pg_ctl stop -m fast`; what was committed is there after the next start."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(PATIENCE)

    def close(self):
        if self._process.poll() is None:
            self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def execute(self, sql, writer="test"):
        """What the statements print. `writer`: the application_name of the session."""
        # -X: whatever the user's ~/.psqlrc says.
        command = (
            "psql",
            "-X",
            "-d",
            f"{self.target}&application_name={writer}",
            "-v",
            "ON_ERROR_STOP=1",
            "-qtAc",
            sql,
        )
        result = self._run(*command)
        if result.returncode != 0:
            raise AssertionError(result.stderr)
        return result.stdout

    def number(self, sql, writer="test"):
        return int(self.execute(sql, writer))

    def rows(self, sql):
        """The rows of a query, each a dictionary."""
        return json.loads(self.execute(f"SELECT coalesce(json_agg(row), '[]') FROM ({sql}) AS row"))
