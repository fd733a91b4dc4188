"""A private environment of a test: mounts, a cgroup, a home and a user manager. The test can stop it, or cut its power.

The machine itself is not changed. Crontabs, spools, /etc, /dev and systemd's files in /run are private copies or empty, in a mount
namespace. All processes of the test are in a separate cgroup.
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

# The private mounts of the test's processes. The time zone is changed in /etc, and /run contains the lock of cron.
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
# The work of all contenders except Stormy. The script logs its actions. The script uses the real clock, and not the clock that
# was set for its scheduler.
WORKER = """#!/bin/sh
unset LD_PRELOAD FAKETIME FAKETIME_SHARED
note() {{ echo "$1 $(date +%s.%N) $$" >>{folder}/worker.log; }}
note begin
{body}
note end
"""
BODIES = {
    "short": "",
    # Runs until a signal stops the script, and then cleans up.
    "long": "trap 'note warned; exit 1' TERM\nwhile :; do sleep 0.1; done",
    # Ignores the signal.
    "deaf": "trap 'note warned' TERM\nwhile :; do sleep 0.1; done",
    "failing": "echo 'the server said no' >&2; exit 3",
    # Runs so long that the next run is due before the end.
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
        # The bus of the trial keeps running, and does not start a notification server.
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

    # Methods for processes.

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
            # Control groups may appear and disappear during the walk.
            for folder, _, _ in os.walk(tree / self.group):
                try:
                    found |= {int(number) for number in pathlib.Path(folder, "cgroup.procs").read_text().split()}
                except OSError:
                    pass
        return found

    def find(self, program):
        """Returns processes of the test by the end of their program's path."""
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

    # Methods for the machine.

    def power_cut(self):
        """Kills all processes at once, without a chance to clean up."""
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
        """Stops all processes while the clock continues. This simulates suspend, which a test cannot cause."""
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
        # The bus of the mocks has the type "session", because a bus of the type "system" needs a separate user.
        configuration.write_text(BUS.format(kind="session", path=path))
        self.buses[kind] = self.start(["dbus-daemon", f"--config-file={configuration}", "--nofork", "--nopidfile"])
        until(path.exists, 10, "the bus does not start")

    def start_journal(self):
        self.has_journal = True
        self.start(["/lib/systemd/systemd-journald"])
        # This command does the same as systemd-journal-flush.service. After it, the journal is stored on the disk.
        self.run("sh", "-c", "until journalctl --flush 2>/dev/null; do sleep 0.05; done")

    def log_in(self):
        """Starts a bus and a user manager, like a login. The user manager starts the enabled units."""
        self.start_bus()
        if self.manager and self.manager.poll() is None:
            return
        shutil.rmtree(self.folder / "run/systemd", ignore_errors=True)
        # The unit user@.service sets the same log target.
        self.manager = self.start([MANAGER, "--user"], SYSTEMD_LOG_TARGET="journal" if self.has_journal else "console")
        until(lambda: self.systemctl("is-active", "default.target", "timers.target").stdout == "active\nactive\n", 30,
              "the user manager does not start")

    def systemctl(self, *words, check=False):
        return self.run("systemctl", "--user", "--no-pager", *words, check=check)

    def set_zone(self, zone):
        """Replaces the link of the time zone, like timedated."""
        self.run("sh", "-c", f"ln -s /usr/share/zoneinfo/{zone} /etc/localtime.new && mv -T /etc/localtime.new /etc/localtime", check=True)

    # Methods for the work.

    def worker(self, body="short", name="worker"):
        path = self.folder / name
        path.write_text(WORKER.format(folder=self.folder, body=BODIES.get(body, body)))
        path.chmod(0o755)
        return path

    def lines(self, word):
        """Returns the time and the process of each line with this word."""
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
                # The deepest control groups come first, because the kernel removes only empty groups.
                for folder, _, _ in os.walk(tree / self.group, topdown=False):
                    try:
                        os.rmdir(folder)
                    except OSError:
                        pass
            shutil.rmtree(self.folder, ignore_errors=True)


def obstacle():
    """Returns the reason why the comparison cannot run here, or None if it can."""
    if os.getuid():
        return "only root may make the cgroup that a user manager needs"
    if not os.access(MANAGER, os.X_OK):
        return f"{MANAGER} is not installed"
    if not any(os.access(tree, os.W_OK) for tree in TREES):
        return "no cgroup tree can be written"
    return None


__all__ = ["BINARIES", "BODIES", "Ground", "No", "ROOT", "obstacle", "until"]
