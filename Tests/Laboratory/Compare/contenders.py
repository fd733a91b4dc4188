"""The five contenders, used as in their documentation. A contender has no function for work that it has no way to do."""
import json
import signal
import time

from ground import BINARIES, No, until

DAY = 86_400


def clock(at, form="%H:%M:%S"):
    return time.strftime(form, time.gmtime(at))


class Contender:
    # The seconds within which work has to begin after it is due. Work that runs at a start has to end within the same time.
    patience = 6

    def __init__(self, ground):
        self.ground = ground

    def start(self):
        """Logs in, or starts the program that has the schedule."""
        self.ground.log_in()

    def start_endless(self):
        """Starts as above, for work that runs until it is stopped. For Stormy this is a setting of the app."""
        if self.name == "stormy":
            self.ground.environment["PROVING_ENDLESS"] = "1"
        self.start()

    def count(self):
        """Returns the number of runs that began."""
        return len(self.ground.lines("begin"))

    def warned(self):
        return len(self.ground.lines("warned"))

    def wait_count(self, count=1, seconds=None, complaint=None):
        seconds = self.patience if seconds is None else seconds
        until(lambda: self.count() >= count, seconds, complaint or f"the work did not run within {seconds:.0f} s")

    def power_cut(self):
        self.ground.power_cut()

    def settle(self):
        """Waits until the requested work is accepted."""
        time.sleep(0.5)

    def workers(self):
        """Returns the living processes of the work."""
        living = self.ground.members()
        return [process for _, process in self.ground.lines("begin") if process in living]

    def kill_worker(self):
        until(self.workers, 5, "it does not run")
        self.ground.signal(signal.SIGKILL, self.workers())


class SystemdTimer(Contender):
    """systemd.timer(5): OnCalendar= with Persistent=true; systemd.service(5): Type=oneshot with Restart=on-failure."""
    name, title = "systemd", "systemd timer"
    unit = "job"

    def write(self, timer, command, service="Restart=on-failure\nRestartSec=1\n", unit="job"):
        folder = self.ground.folder / "config/systemd/user"
        (folder / f"{unit}.service").write_text(f"[Unit]\nStartLimitIntervalSec=0\n[Service]\nType=oneshot\nExecStart={command}\n{service}")
        (folder / f"{unit}.timer").write_text(f"[Timer]\n{timer}AccuracySec=1us\n[Install]\nWantedBy=timers.target\n")
        self.ground.systemctl("daemon-reload", check=True)
        self.ground.systemctl("enable", "--now", f"{unit}.timer", check=True)

    def daily(self, at, body="short", service="Restart=on-failure\nRestartSec=1\n", persistent=True, unit="job"):
        worker = self.ground.worker(body, unit)
        self.write(f"OnCalendar=*-*-* {clock(at)}\nPersistent={str(persistent).lower()}\n", worker, service, unit)

    def once(self, at, body="short", service="Restart=on-failure\nRestartSec=1\n", unit="job"):
        # A transient timer would end with its manager. If a time is in the past when the manager reads the timer, the timer never
        # fires.
        at = max(at, time.time() + 3)
        self.write(f"OnCalendar={clock(at, '%Y-%m-%d %H:%M:%S')}\nPersistent=true\n", self.ground.worker(body, unit), service, unit)

    def run_now(self):
        self.ground.systemctl("start", "--no-block", f"{self.unit}.service", check=True)

    def kill_scheduler(self):
        self.ground.signal(signal.SIGKILL, self.ground.find("/systemd"))
        until(lambda: self.ground.manager.poll() is not None, 5, "the user manager does not die")
        # The machine is then logged in again.
        self.start()

    def end(self):
        self.ground.systemctl("disable", "--now", "job.timer", "job.service", check=True)


class Cron(Contender):
    """crontab(5) with flock(1) and timeout(1) if a line needs them, and anacron(8) for missed work.

    The clock of cron is twenty times faster, so a minute takes three seconds. The clock continues during a power cut."""
    name, title = "cron", "cron + anacron"
    rate, patience = 20, 9

    def __init__(self, ground):
        super().__init__(ground)
        self.begun, self.lines_of = time.time(), []
        self.daemon, self.anacrontab = None, ground.folder / "anacrontab"

    def now(self):
        return self.begun + (time.time() - self.begun) * self.rate

    def real(self, at):
        """Returns the real time of a time of cron's clock."""
        return self.begun + (at - self.begun) / self.rate

    def start(self):
        if self.daemon and self.daemon.poll() is None:
            return
        offset = self.now() - time.time()
        self.daemon = self.ground.start(["faketime", "-f", f"{offset:+.3f} x{self.rate}", "/usr/sbin/cron", "-f", "-L", "15"])
        # cron compares complete seconds. If the crontab is written in the second in which cron starts, cron does not detect a
        # change.
        time.sleep(1.2)

    def minute(self, ahead=2):
        """Returns the beginning of a future minute of cron's clock."""
        return (int(self.now()) // 60 + ahead) * 60

    def line(self, when, command, more=False):
        """Adds a line. `more` is true if another line follows, because cron misses the second of two changes in one second."""
        self.lines_of.append(f"{when} {command}\n")
        if more:
            return
        path = self.ground.folder / "crontab"
        environment = "".join(f"{key}={value}\n" for key, value in self.ground.environment.items()
                              if key.startswith(("XDG_", "DBUS_")) or key == "PATH")
        path.write_text(f"MAILTO=\"\"\n{environment}" + "".join(self.lines_of))
        self.ground.run("crontab", path, check=True)

    def daily(self, at, body="short", prefix="", unit="job", more=False):
        self.line(clock(at, "%M %H * * *"), f"{prefix}{self.ground.worker(body, unit)}", more)

    def settle(self):
        """Waits until the crontab is read, which is at the next minute."""
        time.sleep(60 / self.rate + 0.3)

    def once(self, at, body="short", prefix="", unit="job"):
        # cron has no schedule for a single time. A line with the day and the month is the nearest possible schedule, and repeats
        # next year.
        self.line(clock(at, "%M %H %d %m *"), f"{prefix}{self.ground.worker(body, unit)}")

    def every_minute(self, body="short", prefix=""):
        self.line("* * * * *", f"{prefix}{self.ground.worker(body, 'job')}")

    def anacron(self, days=0, force=False):
        """Runs anacron some days later, as anacron.service does at a start, but without a delay."""
        self.anacrontab.write_text(f"SHELL=/bin/sh\nPATH=/usr/bin:/bin\n1 0 job {self.ground.folder}/job\n")
        words = ["/usr/sbin/anacron", "-d", "-n", "-t", self.anacrontab, *(["-f"] if force else [])]
        return self.ground.start(["faketime", "-f", f"{days:+d}d", *words] if days else words)

    def kill_scheduler(self):
        self.ground.signal(signal.SIGKILL, self.ground.find("/cron"))
        until(lambda: self.daemon.poll() is not None, 5, "cron does not die")
        # The unit cron.service has Restart=on-failure, so cron is started again.
        self.start()


class NohupLoop(Contender):
    """`nohup sh -c 'while …; do …; done' &`. The loop checks the time twice a second."""
    name, title = "nohup", "nohup loop"

    def start(self):
        # After a login, the loop is not started again, because nothing restarts it.
        self.ground.start_bus()

    def loop(self, script):
        with open(self.ground.folder / "nohup.out", "ab") as output:
            self.process = self.ground.start(["nohup", "sh", "-c", script], output=output)

    def daily(self, at, body="short", prefix="", unit="job"):
        worker = self.ground.worker(body, unit)
        self.loop(f"while sleep 0.5; do [ $(date +%T) = {clock(at)} ] && {{ {prefix}{worker}; sleep 1; }}; done")

    def once(self, at, body="short", prefix="", unit="job"):
        self.loop(f"sleep {max(at - time.time(), 0):.2f}; until {prefix}{self.ground.worker(body, unit)}; do sleep 1; done")

    def kill_scheduler(self):
        self.ground.signal(signal.SIGKILL, [self.process.pid])

    def end(self):
        # The process was started with setsid(1), so it has a separate process group.
        self.ground.signal(signal.SIGTERM, [-self.process.pid])


class WorkManager(Contender):
    """The units and commands of docs/linux.mdx and of the code (0.1.1). A user of the package cannot change them."""
    name, title = "workmanager", "workmanager_linux"
    # AccuracySec= is not set, so a timer may be late by its default of one minute.
    patience = 66
    unit = "workmanager-5d1c21d0"

    def periodic(self, delay, frequency=DAY, body="short", unit=None):
        unit = unit or self.unit
        folder = self.ground.folder / "config/systemd/user"
        worker = self.ground.worker(body, f"app-{unit[-2:]}")
        first = f"OnStartupSec={max(int(delay), 1)}\n" if delay is not None else ""
        (folder / f"{unit}.service").write_text(
            f"[Unit]\nDescription=Workmanager task\n\n[Service]\nType=oneshot\nExecStart={worker} --background-task job\n")
        (folder / f"{unit}.timer").write_text(
            f"[Unit]\nDescription=Workmanager task\n\n[Timer]\n{first}OnUnitActiveSec={int(frequency)}\nPersistent=true\n"
            f"Unit={unit}.service\n\n[Install]\nWantedBy=timers.target\n")
        self.ground.systemctl("daemon-reload", check=True)
        self.ground.systemctl("enable", "--now", f"{unit}.timer", check=True)

    def daily(self, at, body="short", unit=None):
        """Schedules the nearest possible form: a delay until the time, and a day between two runs."""
        self.periodic(at - time.time(), body=body, unit=unit)

    def once(self, at, body="short", unit=None):
        unit, delay = unit or self.unit, int(at - time.time())
        when = [f"--on-active={delay}"] if delay > 0 else ["--no-block"]
        worker = self.ground.worker(body, f"app-{unit[-2:]}")
        self.ground.run("systemd-run", "--user", "--collect", f"--unit={unit}", *when, worker, "--background-task", "job", check=True)

    def run_now(self):
        self.ground.systemctl("start", "--no-block", f"{self.unit}.service", check=True)

    kill_scheduler = SystemdTimer.kill_scheduler

    def end(self):
        """Does the same as cancelAll of the package."""
        for words in (["stop", "workmanager-*.timer"], ["stop", "workmanager-*.service"], ["disable", "workmanager-*.timer"],
                      ["reset-failed", "workmanager-*"]):
            self.ground.systemctl(*words)
        for path in (self.ground.folder / "config/systemd/user").glob("workmanager-*.*"):
            if path.is_file() or path.is_symlink():
                path.unlink()
        self.ground.systemctl("daemon-reload")


class Stormy(Contender):
    """`stormy schedule` for daily work, and apps with the API for other work (proving-ground and courier-example)."""
    name, title = "stormy", "Stormy"
    patience = 6

    def stormy(self, *words, check=True, **environment):
        return self.ground.run(BINARIES / "stormy", *words, check=check, **environment)

    def app(self, *words, check=True, **environment):
        return self.ground.run(BINARIES / "proving-ground", *words, check=check, **environment)

    def asked(self, verb, app=False):
        """Returns the output of a command with --json."""
        done = self.app("background", verb, "--json", check=False) if app else self.stormy(verb, "--json", check=False)
        return json.loads(done.stdout) if done.stdout else {}

    def configure(self, text):
        folder = self.ground.folder / "config/stormy"
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text(text)
        (folder / "config.toml").chmod(0o600)

    def daily(self, at):
        self.stormy("schedule", "--at", clock(at), "--exact")

    def once(self, at, body="short"):
        """Submits a request of the app. If PROVING_ENDLESS is set, the handler runs until it expires."""
        delay = max(at - time.time(), 0)
        self.app("refresh", f"{delay:.2f}")

    def checks(self):
        """Returns the launches of the history, without skipped launches."""
        return [entry for entry in self.asked("history") or [] if entry["kind"] == "appRefresh" and entry["outcome"] != "skipped"]

    def count(self):
        """Returns the number of daily checks in the history plus the number of runs that the app's handler logged."""
        return len(self.checks()) + self.begun()

    def begun(self, word="begin"):
        log = self.ground.log
        return sum(line.startswith(f"{word} ") for line in log.read_text().splitlines()) if log.exists() else 0

    def warned(self):
        return self.begun("expire")

    def workers(self):
        """Returns the processes of launches, which have no arguments."""
        found = []
        for process in self.ground.find("/proving-ground"):
            try:
                words = open(f"/proc/{process}/cmdline", "rb").read().split(b"\0")
            except OSError:
                continue
            if len(words) == 2:
                found.append(process)
        return found

    def agent(self, app=False):
        return (self.asked("status", app) or {}).get("agent", {}).get("pid")

    def kill_scheduler(self, app=False):
        """Kills the agent, or the user manager with its timer if no agent has to run."""
        agent = self.agent(app)
        self.ground.signal(signal.SIGKILL, [agent] if agent else self.ground.find("/systemd"))
        if not agent:
            until(lambda: self.ground.manager.poll() is not None, 5, "the user manager does not die")
            self.start()

    def end(self):
        self.stormy("quit")
        self.app("background", "quit")


CONTENDERS = {kind.name: kind for kind in (SystemdTimer, Cron, NohupLoop, WorkManager, Stormy)}
__all__ = ["BINARIES", "CONTENDERS", "DAY", "Contender", "Cron", "NohupLoop", "Stormy", "SystemdTimer", "WorkManager", "No", "clock", "until"]
