"""A copy of a daemon's data directory that has the compiled code and nothing else: no trial, no incumbent, no job.

What a fresh store with warm artifacts is: what each compile key gave (docs/store.md, table `artifacts`) stays, failed
compiles included, so that a daemon that begins with the copy compiles nothing of it again and knows of no time.
"""

import os
import shutil
import sqlite3

KEPT = ("artifacts",)
FILES = ("attune.db", "attune.db-wal", "host.binpb")


def copy_code(data, target):
    """`data` is that of a daemon that has ended; `target` must not exist. Code is linked, or else copied."""
    target.mkdir(parents=True)
    for name in FILES:
        if (data / name).exists():
            shutil.copy2(data / name, target / name)
    if (data / "artifacts").exists():
        shutil.copytree(data / "artifacts", target / "artifacts", copy_function=link)
    forget(target / "attune.db")


def link(source, target):
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def forget(database):
    """Empties every table but KEPT."""
    connection = sqlite3.connect(database)
    try:
        with connection:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for table in tables:
                if table not in KEPT and not table.startswith("sqlite_"):
                    connection.execute(f'DELETE FROM "{table}"')
        broken = connection.execute("PRAGMA foreign_key_check").fetchall()
        if broken:
            raise RuntimeError(f"{database}: rows that refer to what is gone: {broken[:3]}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
