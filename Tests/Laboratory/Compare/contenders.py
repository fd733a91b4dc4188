"""The five, each as its own documentation says that it is used. What one of them has no way to do, it has no function for."""
import json
import signal
import time

from ground import BINARIES, No, until

DAY = 86_400


def clock(at, form="%H:%M:%S"):
    return time.strftime(form, time.gmtime(at))


class Contender:
    # How long after the due second it may begin, and how long until it must have ended what it does at a start.
    patience = 6

    def __init__(self, ground):
        self.ground = ground

    def start(self):
        """Logs in, or brings up what keeps the schedule."""
        self.ground.log_in()

    def start_endless(self):
        """The same, for work that runs until it is told to stop: Stormy's is an app, which has to be told so first."""
        if self.name == "stormy":
            self.ground.environment["PROVING_ENDLESS"] = "1"
        self.start()

    def count(self):
        """Runs that began."""
        return len(self.ground.lines("begin"))

    def warned(self):
        return len(self.ground.lines("warned"))

    def wait_count(self, count=1, seconds=None, complaint=None):
        seconds = self.patience if seconds is None else seconds
        until(lambda: self.count() >= count, seconds, complaint or f"it had not run {seconds:.0f} s later")

    def power_cut(self):
        self.ground.power_cut()

    def settle(self):
        """Until what was asked for is taken."""
        time.sleep(0.5)

    def workers(self):
        """Living processes of the work."""
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
        # A transient timer would be gone with its manager. What is past when it is read never comes.
        at = max(at, time.time() + 3)
        self.write(f"OnCalendar={clock(at, '%Y-%m-%d %H:%M:%S')}\nPersistent=true\n", self.ground.worker(body, unit), service, unit)

    def run_now(self):
        self.ground.systemctl("start", "--no-block", f"{self.unit}.service", check=True)

    def kill_scheduler(self):
        self.ground.signal(signal.SIGKILL, self.ground.find("/systemd"))
        until(lambda: self.ground.manager.poll() is not None, 5, "the user manager does not die")
        # The next login.
        self.start()

    def end(self):
        self.ground.systemctl("disable", "--now", "job.timer", "job.service", check=True)


class Cron(Contender):
    """crontab(5) with flock(1) and timeout(1) where a line needs them; anacron(8) for what was missed.

    The clock of cron runs twenty times as fast: a minute takes three seconds. It goes on so over a power cut."""
    name, title = "cron", "cron + anacron"
    rate, patience = 20, 9

    def __init__(self, ground):
        super().__init__(ground)
        self.begun, self.lines_of = time.time(), []
        self.daemon, self.anacrontab = None, ground.folder / "anacrontab"

    def now(self):
        return self.begun + (time.time() - self.begun) * self.rate

    def real(self, at):
        """When a moment of cron's clock comes."""
        return self.begun + (at - self.begun) / self.rate

    def start(self):
        if self.daemon and self.daemon.poll() is None:
            return
        offset = self.now() - time.time()
        self.daemon = self.ground.start(["faketime", "-f", f"{offset:+.3f} x{self.rate}", "/usr/sbin/cron", "-f", "-L", "15"])
        # It compares whole seconds: a crontab of the second in which it began is none that changed.
        time.sleep(1.2)

    def minute(self, ahead=2):
        """The beginning of a minute of cron's clock that is to come."""
        return (int(self.now()) // 60 + ahead) * 60

    def line(self, when, command, more=False):
        """`more`: another line follows. Two crontabs in one second are one to cron, whose clock is quicker than that of the files."""
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
        """Until the crontab is read: at the next minute."""
        time.sleep(60 / self.rate + 0.3)

    def once(self, at, body="short", prefix="", unit="job"):
        # The nearest that there is: it comes again next year.
        self.line(clock(at, "%M %H %d %m *"), f"{prefix}{self.ground.worker(body, unit)}")

    def every_minute(self, body="short", prefix=""):
        self.line("* * * * *", f"{prefix}{self.ground.worker(body, 'job')}")

    def anacron(self, days=0, force=False):
        """As anacron.service runs it at a start, without its delay, so many days later."""
        self.anacrontab.write_text(f"SHELL=/bin/sh\nPATH=/usr/bin:/bin\n1 0 job {self.ground.folder}/job\n")
        words = ["/usr/sbin/anacron", "-d", "-n", "-t", self.anacrontab, *(["-f"] if force else [])]
        return self.ground.start(["faketime", "-f", f"{days:+d}d", *words] if days else words)

    def kill_scheduler(self):
        self.ground.signal(signal.SIGKILL, self.ground.find("/cron"))
        until(lambda: self.daemon.poll() is not None, 5, "cron does not die")
        # cron.service has Restart=on-failure.
        self.start()


class NohupLoop(Contender):
    """`nohup sh -c 'while …; do …; done' &`: the loop looks twice a second whether it is time."""
    name, title = "nohup", "nohup loop"

    def start(self):
        # A login starts no loop again.
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
        # One started with setsid(1) has a group of its own.
        self.ground.signal(signal.SIGTERM, [-self.process.pid])


class WorkManager(Contender):
    """The units and commands that docs/linux.mdx and its code (0.1.1) describe: nothing can be added to them by who uses the package."""
    name, title = "workmanager", "workmanager_linux"
    # AccuracySec= is not set, and its default is a minute.
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
        """The nearest that there is: the delay until then, and a day between two runs."""
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
        """cancelAll."""
        for words in (["stop", "workmanager-*.timer"], ["stop", "workmanager-*.service"], ["disable", "workmanager-*.timer"],
                      ["reset-failed", "workmanager-*"]):
            self.ground.systemctl(*words)
        for path in (self.ground.folder / "config/systemd/user").glob("workmanager-*.*"):
            if path.is_file() or path.is_symlink():
                path.unlink()
        self.ground.systemctl("daemon-reload")


class Stormy(Contender):
    """`stormy schedule` for what is daily; an app with the API for the rest (proving-ground, courier-example of this repository)."""
    name, title = "stormy", "Stormy"
    patience = 6

    def stormy(self, *words, check=True, **environment):
        return self.ground.run(BINARIES / "stormy", *words, check=check, **environment)

    def app(self, *words, check=True, **environment):
        return self.ground.run(BINARIES / "proving-ground", *words, check=check, **environment)

    def asked(self, verb, app=False):
        """What a verb answers with --json."""
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
        """An app's request; its handler runs until it is told to stop where PROVING_ENDLESS is set."""
        delay = max(at - time.time(), 0)
        self.app("refresh", f"{delay:.2f}")

    def checks(self):
        """One that was left out is in the history, too."""
        return [entry for entry in self.asked("history") or [] if entry["kind"] == "appRefresh" and entry["outcome"] != "skipped"]

    def count(self):
        """Of the daily check by its history, of the app by what its handler wrote."""
        return len(self.checks()) + self.begun()

    def begun(self, word="begin"):
        log = self.ground.log
        return sum(line.startswith(f"{word} ") for line in log.read_text().splitlines()) if log.exists() else 0

    def warned(self):
        return self.begun("expire")

    def workers(self):
        """An app process without arguments is a launch."""
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
        """Its agent; where none has to run, the user manager that holds its timer."""
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
