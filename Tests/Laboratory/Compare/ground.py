"""A machine of a test's own on this one: mounts, a cgroup, a home, a user manager; its power can be cut, and it can be stopped and go on.

Nothing of the machine is touched: crontabs, spools, /etc, /dev and what systemd keeps in /run are private copies or empty, in a mount
namespace. Every process of the test is in a cgroup of its own.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / "Tests/NotificationServers"), str(ROOT / "Tests/Interop")]
from bus import No, until  # noqa: E402

BINARIES = pathlib.Path(os.environ.get("BIN", ROOT / ".build/debug")).resolve()
TREES = [pathlib.Path("/sys/fs/cgroup", tree) for tree in ("systemd", "unified")]
MANAGER = "/lib/systemd/systemd"

# What a process of the test sees in place of the machine's own. /etc is written to when the zone changes; in /run is the lock of cron.
MOUNTS = """
set -e
mount --make-rprivate /
mkdir -p {folder}/etc.up {folder}/etc.work {folder}/dev
mount -t overlay overlay -o lowerdir=/etc,upperdir={folder}/etc.up,workdir={folder}/etc.work /etc
rm -rf /etc/cron.d /etc/timezone; mkdir /etc/cron.d; : >/etc/crontab
mount -t tmpfs none {folder}/dev
for node in null zero full random urandom tty; do cp -a /dev/$node {folder}/dev/$node; done
ln -s /proc/self/fd {folder}/dev/fd; ln -s /run/systemd/journal/dev-log {folder}/dev/log; mkdir -m 1777 {folder}/dev/shm
mount --move {folder}/dev /dev
mount -t tmpfs none /run; mkdir -p /run/systemd/system /run/systemd/journald.conf.d /run/log /run/lock
mount -t tmpfs none /var/log; mkdir /var/log/journal
mount -t tmpfs none /var/spool; mkdir -p /var/spool/anacron /var/spool/cron; mkdir -m 1730 /var/spool/cron/crontabs
chgrp crontab /var/spool/cron/crontabs 2>/dev/null || true
printf '[Journal]\\nAudit=no\\nReadKMsg=no\\nForwardToWall=no\\nStorage=persistent\\n' >/run/systemd/journald.conf.d/own.conf
echo ready
exec sleep infinity
"""
# The work of everybody but Stormy: it writes what it does. A clock that was set for its scheduler is not its own.
WORKER = """#!/bin/sh
unset LD_PRELOAD FAKETIME FAKETIME_SHARED
note() {{ echo "$1 $(date +%s.%N) $$" >>{folder}/worker.log; }}
note begin
{body}
note end
"""
BODIES = {
    "short": "",
    # Until it is told to stop; then it tidies up.
    "long": "trap 'note warned; exit 1' TERM\nwhile :; do sleep 0.1; done",
    # Does not listen.
    "deaf": "trap 'note warned' TERM\nwhile :; do sleep 0.1; done",
    "failing": "echo 'the server said no' >&2; exit 3",
    # Long enough for the next to be due meanwhile.
    "slow": "sleep 7",
}
BUS = """<busconfig><type>{kind}</type><listen>unix:path={path}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
"""


class Ground:
    def __init__(self, name):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cmp-"))
        self.group = f"compare-{os.getpid()}-{name}"
        self.log = self.folder / "worker.log"
        self.output = open(self.folder / "output.log", "ab")
        run = self.folder / "run"
        run.mkdir(mode=0o700)
        self.environment = {
            key: value for key, value in os.environ.items()
            if not key.startswith(("XDG_", "DBUS_", "DISPLAY", "WAYLAND", "SSH_", "TZ", "STORMY", "BACKGROUND"))}
        self.environment |= {
            "HOME": str(self.folder), "XDG_RUNTIME_DIR": str(run), "DBUS_SESSION_BUS_ADDRESS": f"unix:path={run}/bus",
            "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={run}/system-bus", "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8",
            "PROVING_LOG": str(self.log), "PROVING_FOLDER": str(self.folder), "COURIER_LOG": str(self.folder / "courier.log")}
        for kind in ("CONFIG", "STATE", "DATA", "CACHE"):
            self.environment[f"XDG_{kind}_HOME"] = str(self.folder / kind.lower())
        # The trial's own bus stays, and starts no notification server by itself.
        units = self.folder / "config/systemd/user"
        units.mkdir(parents=True)
        for name in ("dbus.socket", "dbus.service"):
            (units / name).symlink_to("/dev/null")
        self.processes, self.manager, self.buses, self.has_journal = [], None, {}, False
        for tree in TREES:
            if tree.exists():
                (tree / self.group).mkdir()
        self.keeper = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", MOUNTS.format(folder=self.folder)], stdout=subprocess.PIPE, stderr=self.output, text=True)
        if self.keeper.stdout.readline() != "ready\n":
            raise RuntimeError(f"no mounts of its own: {self.said()[-500:]}")

    def said(self):
        return (self.folder / "output.log").read_text(errors="replace")

    # Processes.

    def inside(self, words):
        enter = "for tree in " + " ".join(str(tree) for tree in TREES) + \
            f"; do [ ! -d $tree ] || echo $$ >$tree/{self.group}/cgroup.procs; done; exec \"$@\""
        return ["nsenter", "-t", str(self.keeper.pid), "-m", "--", "sh", "-c", enter, "sh", *map(str, words)]

    def start(self, words, output=None, **environment):
        process = subprocess.Popen(
            self.inside(words), env=self.environment | environment, cwd=self.folder, stdin=subprocess.DEVNULL,
            stdout=output or self.output, stderr=output or self.output, start_new_session=True)
        self.processes.append(process)
        return process

    def run(self, *words, check=False, seconds=60, **environment):
        done = subprocess.run(self.inside(words), env=self.environment | environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=seconds)
        if check and done.returncode:
            raise RuntimeError(f"{words}: {done.returncode} {done.stderr[-400:]}{done.stdout[-400:]}")
        return done

    def members(self):
        found = set()
        for tree in TREES:
            # Groups come and go meanwhile, which a walk does not mind.
            for folder, _, _ in os.walk(tree / self.group):
                try:
                    found |= {int(number) for number in pathlib.Path(folder, "cgroup.procs").read_text().split()}
                except OSError:
                    pass
        return found

    def find(self, program):
        """Processes of the test by the end of their program's path."""
        found = []
        for number in self.members():
            try:
                if os.readlink(f"/proc/{number}/exe").endswith(program):
                    found.append(number)
            except OSError:
                pass
        return found

    def signal(self, number, processes=None):
        for process in self.members() if processes is None else processes:
            try:
                os.kill(process, number)
            except ProcessLookupError:
                pass

    # The machine.

    def power_cut(self):
        """Everything dies at once, with no chance to tidy up."""
        end = time.monotonic() + 20
        while self.members():
            self.signal(signal.SIGKILL)
            self.reap()
            if time.monotonic() > end:
                raise RuntimeError(f"{self.members()} outlive a power cut")
            time.sleep(0.02)
        self.manager, self.buses = None, {}

    def reap(self):
        self.processes = [process for process in self.processes if process.poll() is None]

    def stop_all(self):
        """In place of sleep, which no test can bring about: nobody runs, the clock does."""
        self.signal(signal.SIGSTOP)

    def go_on(self):
        self.signal(signal.SIGCONT)

    def start_bus(self, kind="session"):
        name = "bus" if kind == "session" else "system-bus"
        if kind in self.buses:
            return
        path = self.folder / "run" / name
        path.unlink(missing_ok=True)
        configuration = self.folder / f"{name}.conf"
        # The mocks' own bus is of the kind "session", too: one of the system's asks for a user of its own.
        configuration.write_text(BUS.format(kind="session", path=path))
        self.buses[kind] = self.start(["dbus-daemon", f"--config-file={configuration}", "--nofork", "--nopidfile"])
        until(path.exists, 10, "the bus does not start")

    def start_journal(self):
        self.has_journal = True
        self.start(["/lib/systemd/systemd-journald"])
        # What systemd-journal-flush.service does, after which it is kept on the disk.
        self.run("sh", "-c", "until journalctl --flush 2>/dev/null; do sleep 0.05; done")

    def log_in(self):
        """As a login starts it: a bus, and a user manager that starts what is enabled."""
        self.start_bus()
        if self.manager and self.manager.poll() is None:
            return
        shutil.rmtree(self.folder / "run/systemd", ignore_errors=True)
        # Where user@.service has it write to.
        self.manager = self.start([MANAGER, "--user"], SYSTEMD_LOG_TARGET="journal" if self.has_journal else "console")
        until(lambda: self.systemctl("is-active", "default.target", "timers.target").stdout == "active\nactive\n", 30,
              "the user manager does not start")

    def systemctl(self, *words, check=False):
        return self.run("systemctl", "--user", "--no-pager", *words, check=check)

    def set_zone(self, zone):
        """As timedated does it: another link takes the place of the old one."""
        self.run("sh", "-c", f"ln -s /usr/share/zoneinfo/{zone} /etc/localtime.new && mv -T /etc/localtime.new /etc/localtime", check=True)

    # The work.

    def worker(self, body="short", name="worker"):
        path = self.folder / name
        path.write_text(WORKER.format(folder=self.folder, body=BODIES.get(body, body)))
        path.chmod(0o755)
        return path

    def lines(self, word):
        """(time, process) of each."""
        text = self.log.read_text() if self.log.exists() else ""
        return [(float(line.split()[1]), int(line.split()[2])) for line in text.splitlines() if line.startswith(f"{word} ") and line.count(" ") == 2]

    def close(self):
        try:
            self.power_cut()
        finally:
            self.keeper.kill()
            self.keeper.wait()
            self.keeper.stdout.close()
            self.output.close()
            for tree in TREES:
                # Deepest first: the kernel removes empty groups only.
                for folder, _, _ in os.walk(tree / self.group, topdown=False):
                    try:
                        os.rmdir(folder)
                    except OSError:
                        pass
            shutil.rmtree(self.folder, ignore_errors=True)


def obstacle():
    """Why it cannot be tried here; None: it can."""
    if os.getuid():
        return "only root may make the cgroup that a user manager needs"
    if not os.access(MANAGER, os.X_OK):
        return f"{MANAGER} is not installed"
    if not any(os.access(tree, os.W_OK) for tree in TREES):
        return "no cgroup tree can be written"
    return None


__all__ = ["BINARIES", "BODIES", "Ground", "No", "ROOT", "obstacle", "until"]
