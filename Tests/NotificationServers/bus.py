"""A private session bus with a record of the messages of notification servers and their clients."""
import json
import pathlib
import shutil
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
# The folder that contains Debian's D-Bus service files.
SERVICES = pathlib.Path("/usr/share/dbus-1/services")
NAME = "org.freedesktop.Notifications"

CONFIGURATION = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>{address}</listen><auth>EXTERNAL</auth><servicedir>{services}</servicedir>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
<limit name="max_message_size">134217728</limit></busconfig>
"""


class No(Exception):
    """A feature is missing. The message is the reason."""


def until(what, seconds, complaint):
    """Waits until `what` returns a true value, and returns the value. Raises `No` with `complaint` after the given seconds."""
    end = time.monotonic() + seconds
    while True:
        found = what()
        if found:
            return found
        if time.monotonic() > end:
            raise No(complaint)
        time.sleep(0.04)


class Notice:
    """A call of Notify, its response, and the close of the notification."""

    def __init__(self, event, epoch):
        (self.app, self.replaces, self.icon, self.title, self.body, self.actions, self.hints, self.timeout) = event["arguments"]
        self.call = (event["sender"], event["serial"])
        self.at, self.epoch = event["at"], epoch
        self.answered_at = self.closed_at = self.number = self.reason = self.error = None

    @property
    def keys(self):
        return self.actions[0::2]


class Bus:
    """A session bus in a folder. The bus does not start a notification server, because its service files do not include one."""

    def __init__(self, folder, processes, services=(), environment=None):
        self.folder, self.processes, self.environment = folder, processes, environment
        self.address = f"unix:path={folder}/run/bus"
        self.record = folder / "bus.jsonl"
        self.process = self.recorder = None
        self.taken, self.epoch = 0, 0
        self.events, self.notices = [], []
        # The connections of servers and of their helpers. An app does not make the calls between them.
        self.servers = set()
        place = folder / "services"
        place.mkdir()
        for pattern in services:
            for path in SERVICES.glob(pattern):
                if f"Name={NAME}\n" not in path.read_text():
                    shutil.copy(path, place)
        (folder / "bus.conf").write_text(CONFIGURATION.format(address=self.address, services=place))

    def start(self):
        (self.folder / "run/bus").unlink(missing_ok=True)
        self.process = self.processes.start(
            "bus", ["dbus-daemon", f"--config-file={self.folder}/bus.conf", "--nofork", "--nopidfile"], self.environment)
        until(lambda: self.ask("GetId").returncode == 0, 10, "the bus does not start")
        marks = self.count_ready()
        self.recorder = self.processes.start("recorder", ["/usr/bin/python3", str(HERE / "bus_recorder.py"), self.address, str(self.record)])
        until(lambda: self.count_ready() > marks, 10, "the recorder does not start")

    def count_ready(self):
        self.read()
        return sum(event["kind"] == "ready" for event in self.events)

    def kill(self):
        self.processes.kill(self.process)
        self.processes.kill(self.recorder)
        self.note_server_gone()

    def ask(self, method, *words, destination="org.freedesktop.DBus", path="/org/freedesktop/DBus", interface="org.freedesktop.DBus",
            seconds=20):
        return subprocess.run(
            ["gdbus", "call", "--address", self.address, "--dest", destination, "--object-path", path, "--timeout", str(seconds), "--method",
             f"{interface}.{method}", *words], capture_output=True, text=True)

    def ask_server(self, method, *words):
        return self.ask(method, *words, destination=NAME, path="/org/freedesktop/Notifications", interface=NAME)

    def owner(self):
        """Returns the connection of the notification server, or None without a server."""
        answer = self.ask("GetNameOwner", NAME)
        return answer.stdout.split("'")[1] if answer.returncode == 0 else None

    def note_server_gone(self):
        """Begins a new epoch, because the numbers of the last server's notifications are now invalid."""
        self.read()
        self.epoch += 1

    def read(self):
        """Reads the messages that were recorded since the last call."""
        if not self.record.exists():
            return
        with open(self.record, "rb") as file:
            file.seek(self.taken)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self.taken += len(line)
                self.take(json.loads(line))

    def take(self, event):
        event.setdefault("member", None)
        self.events.append(event)
        if event["kind"] == "call" and event["member"] == "Notify" and len(event["arguments"]) == 8:
            if event["sender"] not in self.servers:
                self.notices.append(Notice(event, self.epoch))
        elif event["kind"] in ("answer", "error"):
            for notice in reversed(self.notices):
                if notice.call == (event["to"], event["answers"]) and notice.answered_at is None:
                    notice.answered_at = event["at"]
                    if event["kind"] == "error":
                        notice.error = event["error"]
                    elif event["arguments"]:
                        notice.number = event["arguments"][0]
                    break
        elif event["member"] == "NotificationClosed":
            for notice in self.notices:
                if notice.number == event["arguments"][0] and notice.epoch == self.epoch and notice.closed_at is None:
                    notice.closed_at, notice.reason = event["at"], event["arguments"][1]

    def said(self):
        """Returns the calls and signals of notifications and the responses to these calls, without responses to other calls."""
        calls = {(event["sender"], event["serial"]) for event in self.events if event["kind"] == "call"}
        return [event for event in self.events
                if event["kind"] in ("call", "signal") or event["kind"] in ("answer", "error") and (event["to"], event["answers"]) in calls]

    def calls(self, title=None):
        """Returns all calls of Notify so far."""
        self.read()
        return [notice for notice in self.notices if title is None or notice.title == title]

    def standing(self, title=None):
        """Returns the notifications that the current server has and has not closed. A replaced number counts with its last content."""
        self.read()
        found = {}
        for notice in self.notices:
            if notice.epoch == self.epoch and notice.number is not None:
                found[notice.number] = notice
        return [notice for notice in found.values() if notice.closed_at is None and (title is None or notice.title == title)]

    def closings(self, number):
        self.read()
        return [event["arguments"][1] for event in self.events
                if event["member"] == "NotificationClosed" and event["arguments"] and event["arguments"][0] == number]
