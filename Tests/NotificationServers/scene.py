"""One app on a desk: the proving ground in a new home, its agent, its screen and its messages on the bus."""
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import time

from bus import No, until
from desks import ROOT

BINARIES = pathlib.Path(os.environ.get("BIN", ROOT / ".build/debug")).resolve()
PROGRAM = BINARIES / "proving-ground"
DEFAULT = "com.apple.UNNotificationDefaultActionIdentifier"
DISMISS = "com.apple.UNNotificationDismissActionIdentifier"


def has_ended(pid):
    """Returns whether a process has ended with all its threads, because the last thread releases the locks of the process."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        return len(threads) < 2 and "State:\tZ" in pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


class Scene:
    """The app, home and agent in which one feature is tested."""

    def __init__(self, desk, name, pictures):
        """`pictures` is the folder for pictures of the screen."""
        self.desk, self.bus, self.name, self.pictures = desk, desk.bus, name, pictures
        self.is_snapped = False
        self.home = desk.folder / "homes" / name
        self.home.mkdir(mode=0o700, parents=True)
        self.log = self.home / "proving.log"
        self.log.touch()
        self.environment = {key: value for key, value in desk.environment.items() if not key.startswith("XDG_CONFIG")}
        self.environment |= {
            "HOME": str(self.home), "XDG_STATE_HOME": str(self.home / "state"), "PROVING_LOG": str(self.log),
            "PROVING_FOLDER": str(self.home), "BACKGROUND_AGENT": str(BINARIES / "background-agent")}
        self.state = self.home / "state/proving-ground"
        self.begun = time.monotonic()

    # Methods for the app.

    def command(self, *words):
        return [str(PROGRAM), *map(str, words)]

    def run(self, *words, check=True, **environment):
        try:
            done = subprocess.run(self.command(*words), env=self.environment | environment,
                                  capture_output=True, text=True, timeout=40, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            raise No(f"{words[0]} {words[1] if len(words) > 1 else ''} does not return within 40 s")
        if check and done.returncode:
            raise No(f"{words[0]} fails: {done.stdout.strip()[-200:]} {done.stderr.strip()[-200:]}")
        return done

    def notify(self, identifier, **words):
        self.run("notify", identifier, *(f"{key}={value}" for key, value in words.items()))

    def show(self, identifier="storm", **words):
        """Adds a notification and waits until it is on the screen. Returns the call of Notify from the bus."""
        words = {"title": f"Title of {identifier}", "body": "A line of text", **words}
        before = len(self.calls(words["title"]))
        self.notify(identifier, **words)
        return self.wait_shown(words["title"], after=before)

    def wait_shown(self, title, after=0, seconds=8):
        """Waits until the server has responded to more than `after` calls of Notify with this title, and has drawn the notification."""
        def answered():
            return [notice for notice in self.calls(title)[after:] if notice.answered_at]

        found = until(answered, seconds, "the server is not asked to show it")[-1]
        if found.error:
            raise No(f"the server answers {found.error}")
        if self.desk.has_screen:
            until(self.desk.is_shown, 4, "nothing appears on the screen")
            time.sleep(self.desk.drawing)
            self.snap()
        return found

    def calls(self, title=None):
        """Returns this app's calls of Notify so far."""
        return [notice for notice in self.bus.calls(title) if notice.at > self.begun]

    def responses(self):
        """Returns the identifier, action and text of each response that the app has received."""
        found = []
        for line in self.log.read_text(errors="replace").splitlines():
            words = line.split(" ", 3)
            if words[0] == "response":
                found.append((words[1], words[2], words[3] if len(words) > 3 else ""))
        return found

    def wait_response(self, action, identifier="storm", seconds=8):
        """Waits for the response. Raises `No` if the app receives another response, or a second one within a second."""
        until(self.responses, seconds, f"the app hears nothing; {action.rsplit('.', 1)[-1]} was awaited")
        time.sleep(1)
        got = [(name, word) for name, word, _ in self.responses()]
        if got != [(identifier, action)]:
            raise No(f"the app hears {got} instead of {action}")

    def listed(self):
        """Returns the identifiers of the delivered and of the pending notifications, as the app lists them."""
        lines = [line.split(" ", 1) for line in self.run("notifications").stdout.splitlines()]
        return ([name for kind, name in lines if kind == "delivered"], [name for kind, name in lines if kind == "pending"])

    # Methods for the agent.

    def agent(self):
        """Returns the agent's process id, or None if no agent runs."""
        return json.loads(self.run("background", "status", "--json").stdout)["agent"]["pid"]

    def kill_agent(self):
        pid = self.agent()
        if not pid:
            raise No("no agent runs")
        os.kill(pid, signal.SIGKILL)
        until(lambda: has_ended(pid), 5, "the agent does not die")
        return pid

    def start_agent(self):
        """Starts an agent by a call of the app that needs one."""
        self.run("notify", "later", "seconds=3600")

    def quit(self):
        return self.run("background", "quit", check=False)

    def rows(self, query, *values):
        connection = sqlite3.connect(self.state / "agent.sqlite", timeout=10)
        try:
            with connection:
                return connection.execute(query, values).fetchall()
        finally:
            connection.close()

    # Checks that several features use.

    def wait_standing(self, title, count=1, seconds=8, settle=0.0):
        """Waits until the server has exactly `count` notifications with this title, and checks the count again after `settle` seconds."""
        def right():
            return len(self.bus.standing(title)) == count

        try:
            until(right, seconds, "")
        except No:
            raise No(f"{len(self.bus.standing(title))} stand there instead of {count}") from None
        if settle:
            time.sleep(settle)
            found = len(self.bus.standing(title))
            if found != count:
                raise No(f"{found} stand there instead of {count}")
        return self.bus.standing(title)

    def wait_blank(self, seconds=6, complaint="it stays on the screen"):
        until(lambda: not self.desk.is_shown(), seconds, complaint)

    def alive(self, agent):
        """Raises `No` if another agent runs or the server has ended."""
        if self.agent() != agent:
            raise No("the agent did not survive it")
        if not self.desk.is_alive():
            raise No("the server did not survive it")

    def snap(self):
        """Saves a picture of the screen. Later calls have no effect."""
        if not self.is_snapped:
            self.desk.save(self.pictures / f"{self.name}.png")
        self.is_snapped = True

    def home_processes(self):
        """Returns the processes of this home."""
        time.sleep(0.3)
        mark, found = f"HOME={self.home}".encode(), []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                pass
        return found

    def leave(self):
        """Ends the app's agent. Returns whether the desk is in the same state as before."""
        self.quit()
        if not self.desk.is_alive() or not self.desk.answers():
            return False
        try:
            until(lambda: not self.bus.standing() and not self.desk.is_shown(), 2, "")
            return True
        except No:
            return False
