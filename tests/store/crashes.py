"""Cut the power during a change, and look at the disks that may be left.

    python tests/store/crashes.py --states 5000

A disk after a power cut has what was brought to it, and any part of what was not. So each change is
made once under `strace`, which notes every call that changes a file, with its bytes. A state is
drawn of these notes: the power is cut after one of the calls; each folder has the names of some
moment since it was synced itself; each sector of a file is of some moment since that file was; and
SQLite's shared memory is gone. Then the store must be as it was before the change, or as it is
after it, which it must be once that was acknowledged; every check of `verify` must pass; and the
same request must be answered, and make the change at most once.
"""

import argparse
import random
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from pathlib import Path

from faults import CHANGES, state

from traceless.exceptions import RevealingWarning
from traceless.store import Store

SECTOR = 512
CALLS = "openat,write,pwrite64,ftruncate,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat"
LEFT_OUT = "crash states were left out: strace is not here"
LINE = re.compile(r"(?:\d+ +)?(\w+)\((.*)\) += (\d+)(?:<(.*)>)?$")
HANDLE = re.compile(r"(\d+|AT_FDCWD)<(.*?)>")
TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


class File:
    """A file: its bytes at each moment since it changed, and when it was brought to the disk."""

    def __init__(self, moment, content=b""):
        self.versions, self.synced = [(moment, content)], [moment]

    def write(self, moment, at, data):
        old = self.versions[-1][1].ljust(at, b"\0")
        self.versions.append((moment, old[:at] + data + old[at + len(data) :]))

    def left(self, moment, chance):
        """What may be left of it after a power cut."""
        synced = max(m for m in self.synced if m <= moment)
        some = [c for m, c in self.versions if m <= synced][-1:]
        some += [c for m, c in self.versions if synced < m <= moment]
        size = len(chance.choice(some))
        drawn = (chance.choice(some)[i : i + SECTOR] for i in range(0, size, SECTOR))
        return b"".join(sector.ljust(SECTOR, b"\0") for sector in drawn)[:size]


class Notes:
    """The calls of a change, moment by moment."""

    def __init__(self, folder, log):
        self.folder, self.handles = folder, {}
        first = {p: File(0, p.read_bytes()) for p in folder.rglob("*") if p.is_file()}
        self.names, self.synced = [first], defaultdict(lambda: [0])  # of folders
        self._log = log

    def read(self):
        """Read what strace has noted."""
        for line in self._log.read_text(errors="replace").splitlines():
            found = LINE.match(line)
            if found and str(self.folder) in bytes(line, "utf-8").decode("unicode_escape"):
                self._note(*found.groups())
        return self

    def _note(self, call, given, result, opened):
        moment, names = len(self.names), dict(self.names[-1])
        texts = [bytes.fromhex(t.replace("\\x", "")) for t in TEXT.findall(given)]
        handles = HANDLE.findall(TEXT.sub("", given))
        at = Path(_plain(handles[0][1])) if handles else Path()
        if call == "openat":
            path = Path(_plain(opened))
            self.handles[result] = 0
            if "O_CREAT" not in given or path in names:
                return
            names[path] = File(moment)
        elif call in ("write", "pwrite64"):
            place = (
                int(given.rsplit(",", 1)[1]) if call == "pwrite64" else self.handles[handles[0][0]]
            )
            if at not in names:
                return
            names[at].write(moment, place, texts[0][: int(result)])
            if call == "write":
                self.handles[handles[0][0]] += int(result)
        elif call == "ftruncate":
            size = int(given.rsplit(",", 1)[1])
            content = names[at].versions[-1][1][:size].ljust(size, b"\0")
            names[at].versions.append((moment, content))
        elif call in ("fsync", "fdatasync"):
            (names[at].synced if at in names else self.synced[at]).append(moment)
        elif call.startswith("rename"):
            start, end = (at / t.decode() for t in texts)
            names[end] = names.pop(start)
        else:
            names.pop(at / texts[0].decode())
        self.names.append(names)

    def left(self, moment, chance, where):
        """Make a folder of what may be left of it after a power cut."""
        shutil.rmtree(where, ignore_errors=True)
        for folder in (self.folder, self.folder / "generations"):
            (where / folder.relative_to(self.folder)).mkdir(parents=True)
            since = max(m for m in self.synced[folder] if m <= moment)
            for path, file in self.names[chance.randint(since, moment)].items():
                if path.parent == folder and not path.name.endswith("-shm"):
                    content = file.left(moment, chance)
                    (where / path.relative_to(self.folder)).write_bytes(content)
                    (where / path.relative_to(self.folder)).chmod(0o600)


def _plain(text):
    return re.sub(r"\\x([0-9a-f]{2})", lambda m: chr(int(m[1], 16)), text)


def traced(name, folder):
    """Make a change once; returns the state before, the state after, and the notes."""
    path, log = folder / name.replace(" ", "-") / "store", folder / "strace"
    path.parent.mkdir()
    CHANGES[name].before(path)
    before = state(path)
    notes = Notes(path, log)
    make = [sys.executable, __file__, "--make", name, "--at", str(path)]
    strace = [
        "strace",
        "-f",
        "-y",
        "-xx",
        "-s",
        "100000000",
        "-e",
        f"trace={CALLS}",
        "-o",
        str(log),
    ]
    subprocess.run([*strace, *make], check=True)
    return before, state(path), notes.read()


def look(path, change, allowed, after):
    """Raise AssertionError unless a store is as it should be."""
    found = state(path)
    assert found in allowed, f"{found} was left"
    if found != after or change.has_key:
        change.make(path)
    assert state(path) == after, f"then it came to {state(path)}"
    Store(path).flush()
    verified = Store(path).verify()
    assert verified.ok, str(verified)
    return "one change further" if found == after else "as before"


def main(options, folder):
    chance, outcomes, wrong = random.Random(options.seed), Counter(), []
    names = options.only or [name for name in CHANGES if name != "new"]
    made = {name: traced(name, folder) for name in names}
    for i in range(options.states):
        name = names[i % len(names)]
        before, after, notes = made[name]
        last = len(notes.names) - 1
        moment = last if chance.random() < 0.1 else chance.randint(0, last)
        allowed = [after] if moment == last else [before, after]
        notes.left(moment, chance, folder / "left")
        try:
            outcomes[look(folder / "left", CHANGES[name], allowed, after)] += 1
        except Exception as error:  # the others are looked at too
            wrong.append(f"WRONG {name}, call {moment} of {last}: {type(error).__name__} {error}\n")
    said = f"{len(wrong)} were wrong" if wrong else "no state was wrong"
    calls = sum(len(notes.names) - 1 for *_, notes in made.values())
    sys.stdout.write(
        f"{''.join(wrong[:20])}{options.states} disks after a power cut at {calls} calls: {said}; "
        f"{', '.join(f'{n} times {what}' for what, n in sorted(outcomes.items()))}\n"
    )
    return bool(wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", help="states of this change only")
    parser.add_argument("--make", help=argparse.SUPPRESS)
    parser.add_argument("--at", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    warnings.simplefilter("ignore", RevealingWarning)
    if given.make:
        CHANGES[given.make].make(given.at)
        sys.exit()
    if not shutil.which("strace"):
        sys.stdout.write(f"{LEFT_OUT}\n")
        sys.exit()
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as aside:
        sys.exit(main(given, Path(aside)))
