"""What a daemon and its workers leave behind on a host: processes, locks, files."""

import dataclasses
import fcntl
import pathlib
import re

# Where compilers and the driver put what they mean to remove, whatever TMPDIR says, and what they call it there.
# Others' files come and go.
FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
OURS = re.compile("cuda|nv|pocl|tmpxft", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Process:
    pid: int
    begun: int  # in ticks since the host's start: another process with this pid has another
    parent: int
    state: str
    command: tuple

    @property
    def role(self):
        """Of a worker; empty for anything else."""
        return next((word.removeprefix("--role=") for word in self.command if word.startswith("--role=")), "")


def process(pid):
    """None where there is none."""
    folder = pathlib.Path("/proc", str(pid))
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        command = (folder / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return None
    words = tuple(word.decode(errors="replace") for word in command)
    return Process(pid, int(fields[19]), int(fields[1]), fields[0], words)


def descendants(pid):
    """The processes that a process has started, and what they have started."""
    everybody = [process(int(entry.name)) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit()]
    children = {}
    for each in filter(None, everybody):
        children.setdefault(each.parent, []).append(each)
    found, to_do = [], [pid]
    while to_do:
        of = children.get(to_do.pop(), [])
        found += of
        to_do += [each.pid for each in of]
    return found


def living(processes):
    """Those that have not ended; whoever has their number by now is another."""
    now = [(each, process(each.pid)) for each in processes]
    return [each for each, other in now if other is not None and other.begun == each.begun and other.state != "Z"]


def held_locks(folder):
    """The names of lock files that a process holds (server/worker/device_lock.h: locks of fcntl)."""
    held = []
    for path in sorted(folder.glob("*")):
        with open(path, "r+b") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                held.append(path.name)
    return held


def files(folders=FOLDERS):
    """Paths of OURS in the folders."""
    found = [path for folder in map(pathlib.Path, folders) if folder.is_dir() for path in folder.iterdir()]
    return {str(path) for path in found if OURS.search(path.name)}
