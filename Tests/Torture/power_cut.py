"""Simulates power cuts on a disk that keeps only synced data: unsynced.c records every change, and this module undoes the changes.

A cut begins when every process that writes through the library is dead. Each file then loses all unsynced changes, the latest of them, or no
change. Changes of names are lost from one moment on, because a file system's journal keeps the order of names.
"""
import os, pathlib, random, signal, struct, subprocess, sys, time

SOURCE = pathlib.Path(__file__).resolve().parent / "unsynced.c"
# The layout of `struct change` in unsynced.c.
CHANGE = struct.Struct("=QQQqq")


def arguments(kills):
    """Returns the values of the command line `[--power] [KILLS] [SEED]`: whether power is cut, the number of kills, and the seed."""
    numbers = [int(word) for word in sys.argv[1:] if word != "--power"]
    return ("--power" in sys.argv, numbers[0] if numbers else kills,
            numbers[1] if len(numbers) > 1 else random.randrange(1 << 32))


class Disk:
    def __init__(self, root, journal):
        """`root` and `journal` must be in one file system. `journal` must be outside of `root`."""
        self.root, self.journal = pathlib.Path(root), pathlib.Path(journal)
        self.journal.mkdir(mode=0o700)
        library = self.journal.with_suffix(".so")
        subprocess.run(["clang", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
        self.environment = {
            "LD_PRELOAD": str(library), "BACKGROUND_UNSYNCED_ROOT": str(self.root),
            "BACKGROUND_UNSYNCED_JOURNAL": str(self.journal)}
        self.lost_writes = self.lost_names = 0

    def processes(self):
        mark = f"BACKGROUND_UNSYNCED_JOURNAL={self.journal}".encode()
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    if mark in pathlib.Path("/proc", entry, "environ").read_bytes().split(b"\0"):
                        found.append(int(entry))
                except OSError:
                    pass
        return found

    def cut(self, dice):
        """Kills every writing process and undoes changes that a disk may lose in a power cut."""
        deadline = time.monotonic() + 20
        while living := self.processes():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{living} outlive a power cut")
            for number in living:
                try:
                    os.kill(number, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)
        # The number of unsynced changes that a file keeps: no change, all changes, or a random number.
        keep = dice.choice((lambda count: 0, lambda count: count, lambda count: dice.randint(0, count)))
        for notes in sorted(self.journal.glob("c-*")):
            self.undo_content(notes, keep)
        self.undo_names(keep)
        # Removes SQLite's indexes of write-ahead logs. If no process has an index open, the index is invalid. A writer that opens
        # it first resets it. A process that only reads would use the invalid index, for example the checks of these tests.
        for index in self.root.rglob("*-shm"):
            index.unlink()
        for left in self.journal.iterdir():
            left.unlink()

    def undo_content(self, notes, keep):
        held, data, changes = self.journal / notes.name.replace("c-", "i-"), notes.read_bytes(), []
        place = 0
        # The last record may be incomplete. In this case its change was not made.
        while place + CHANGE.size <= len(data):
            offset, old_size, length, seconds, nanoseconds = CHANGE.unpack_from(data, place)
            place += CHANGE.size + length
            if place <= len(data):
                changes.append((offset, old_size, data[place - length:place], seconds * 10**9 + nanoseconds))
        undone = changes[keep(len(changes)):]
        if not undone or not held.exists():
            return
        self.lost_writes += len(undone)
        os.chmod(held, os.stat(held).st_mode | 0o200)
        with open(held, "r+b") as file:
            for offset, old_size, old, _ in reversed(undone):
                os.pwrite(file.fileno(), old, offset)
                os.ftruncate(file.fileno(), old_size)
        os.utime(held, ns=(undone[0][3], undone[0][3]))

    def undo_names(self, keep):
        notes = self.journal / "names"
        pending = []
        for line in notes.read_bytes().split(b"\0\n")[:-1] if notes.exists() else []:
            what, inode, replaced, folder, other, *names = line.split(b"\0")
            if what == b"synced":
                # The inode belongs to a folder or a file. If a new file is synced, all earlier changes of names in its folder
                # also become durable.
                made = [index for index, note in enumerate(pending) if note[0] == b"made" and note[1] == inode]
                of = {note[3] for note in pending if note[0] == b"made" and note[1] == inode}
                pending = [
                    note for index, note in enumerate(pending)
                    if inode not in note[3:5] and not (made and index <= made[-1] and of & set(note[3:5]))]
            else:
                pending.append((what, inode, replaced, folder, other, *names))
        undone = pending[keep(len(pending)):]
        self.lost_names += len(undone)
        for what, inode, replaced, _, _, first, second in reversed(undone):
            if what in (b"made", b"linked"):
                if self.inode(first) == inode:
                    os.unlink(first)
            elif what == b"renamed":
                # The folder was removed later. The journal of the file system keeps its order, so all earlier changes are on the
                # disk.
                if not os.path.isdir(os.path.dirname(first)):
                    break
                if self.inode(second) == inode and self.inode(first) is None:
                    os.rename(second, first)
                    self.bring_back(replaced, second)
            elif what == b"removed":
                self.bring_back(inode, first)

    def bring_back(self, inode, path):
        held = self.journal / f"i-{inode.decode()}"
        if inode != b"0" and held.exists() and self.inode(path) is None and os.path.isdir(os.path.dirname(path)):
            os.link(held, path)

    @staticmethod
    def inode(path):
        try:
            return str(os.lstat(path).st_ino).encode()
        except OSError:
            return None
