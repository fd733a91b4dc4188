#!/usr/bin/env python3
"""Restarts the notification server, the agent and the session bus repeatedly while notifications change. Then checks the screen.

A real dunst runs on a separate screen and a separate bus. Every restart uses SIGKILL. The server, the agent or the bus daemon is killed at a
random moment, or between a `Notify` and its response. For the second case, the server is stopped with SIGSTOP before. The agent is also
killed at named points (BACKGROUND_CRASH_AT). Some restarts coincide. During the restarts, notifications are added, replaced, added with
triggers, taken off, pressed and closed. After a few restarts, the changes pause. The test then compares the requested notifications with
dunst's menu and with the recorded bus:

- LOST: the notification was added, was not pressed, closed or taken off, and is not on the screen or has older content.
- DOUBLED: the notification is on the screen twice.
- GHOST: the notification was pressed, closed or taken off, and is on the screen.
- ALERTED TWICE: one added notification was shown with sound twice. A repeated notification must be silent (`suppress-sound`).
- NEVER ALERTED: the notification is on the screen and was only shown without sound.
- DEAF: the notification is on the screen, but the ledger has another state or number for it. Its buttons have no effect, and the next server
  will not show it.
- DEAD BUTTON: a running agent received a press, but no response was recorded. During a pause, the limit is ten seconds.
- RESPONSE: the app received a press twice, or received a press that did not happen.

Some results cannot be guaranteed, and are counted separately:

- A killed agent may have shown a notification without a record of it. The next agent shows the notification again.
- dunst sends a press or close to no agent if no agent runs. An agent may also be killed before it records the press or close. A pressed
  notification stays on the screen and can be pressed again. A closed notification may be shown again.
- A response may be lost when the bus is cut.

Exits with 1 and keeps the folder if a check failed. BIN names another folder of built binaries.

usage: restarts.py [RESTARTS] [SEED]
"""
import collections, json, os, pathlib, random, select, shutil, signal, socket, sqlite3, struct, subprocess, sys, tempfile, threading, time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("BIN", ROOT / ".build/debug")).resolve()
RESTARTS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
SERVER = "org.freedesktop.Notifications"
SERVER_PATH = "/org/freedesktop/Notifications"
BUS = "org.freedesktop.DBus"
DISMISSED = "com.apple.UNNotificationDismissActionIdentifier"
# For each label in dunst's menu: the action that the app receives.
ACTIONS = {"Accept": "accept", "Later": "later", "Open": "com.apple.UNNotificationDefaultActionIdentifier"}
KEYS = {"accept": "accept", "later": "later", "default": ACTIONS["Open"]}
POINTS = ["agent.noticePresented"] * 5 + ["agent.launchCommitted"] * 2 + ["agent.spawned", "agent.launchStarted", "agent.launchEnded"]
QUIET_LIMIT = 40
PRESS_LIMIT = 10
FINDINGS_LIMIT = 100


def wait(what, seconds, is_so, step=0.005):
    deadline = time.monotonic() + seconds
    while not (value := is_so()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s for {what}")
        time.sleep(step)
    return value


# MARK: D-Bus

Message = collections.namedtuple("Message", "kind serial fields body")
CALL, RETURN, ERROR, SIGNAL = 1, 2, 3, 4
REPLY_SERIAL, MEMBER, DESTINATION, SENDER, SIGNATURE = 5, 3, 6, 7, 8


class Reader:
    """Reads values of the D-Bus wire format in either byte order."""
    SIMPLE = {"y": "B", "n": "h", "q": "H", "i": "i", "u": "I", "x": "q", "t": "Q", "d": "d", "b": "I", "h": "I"}
    ALIGNED = {"y": 1, "g": 1, "v": 1, "n": 2, "q": 2, "x": 8, "t": 8, "d": 8, "(": 8, "{": 8}

    def __init__(self, data, order, at=0):
        self.data, self.order, self.at = data, order, at

    def take(self, code):
        (value,) = struct.unpack_from(self.order + code, self.data, self.at)
        self.at += struct.calcsize(code)
        return value

    def align(self, to):
        self.at += -self.at % to

    @staticmethod
    def first(signature):
        """Returns the length of the first complete type."""
        if signature[0] == "a":
            return 1 + Reader.first(signature[1:])
        if signature[0] not in "({":
            return 1
        depth = 0
        for index, letter in enumerate(signature):
            depth += (letter in "({") - (letter in ")}")
            if depth == 0:
                return index + 1

    def values(self, signature):
        found = []
        while signature:
            length = self.first(signature)
            found.append(self.value(signature[:length]))
            signature = signature[length:]
        return found

    def value(self, kind):
        letter = kind[0]
        self.align(self.ALIGNED.get(letter, 4))
        if letter in self.SIMPLE:
            return self.take(self.SIMPLE[letter])
        if letter in "sog":
            length = self.take("B" if letter == "g" else "I")
            text = self.data[self.at:self.at + length].decode()
            self.at += length + 1
            return text
        if letter == "v":
            return self.value(self.value("g"))
        if letter in "({":
            return self.values(kind[1:-1])
        length = self.take("I")
        self.align(self.ALIGNED.get(kind[1], 4))
        end, found = self.at + length, []
        while self.at < end:
            found.append(self.value(kind[1:]))
        return dict(found) if kind[1] == "{" else found


class Wire:
    """A connection to a bus."""

    def __init__(self, path, timeout=5):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        self.data, self.serial = b"", 0
        try:
            self.socket.connect(str(path))
            self.socket.sendall(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n")
            while b"\r\n" not in self.data:
                self.fill()
            self.data = b""
            self.socket.sendall(b"BEGIN\r\n")
            self.name = self.call(BUS, "/", BUS, "Hello")[0]
        except BaseException:
            self.close()
            raise

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def fill(self):
        more = self.socket.recv(1 << 16)
        if not more:
            raise ConnectionError("the bus is gone")
        self.data += more

    def read(self):
        while len(self.data) < 16:
            self.fill()
        order = "<" if self.data[:1] == b"l" else ">"
        body_length, serial, fields_length = struct.unpack_from(order + "III", self.data, 4)
        start = 16 + fields_length + -fields_length % 8
        while len(self.data) < start + body_length:
            self.fill()
        data, self.data = self.data[:start + body_length], self.data[start + body_length:]
        fields = dict((code, value) for code, value in Reader(data, order, 12).value("a(yv)"))
        return Message(data[1], serial, fields, Reader(data[start:], order).values(fields.get(SIGNATURE, "")))

    def call(self, destination, path, interface, member, signature="", *arguments):
        """Calls a method and returns the body of the response. Arguments are strings, unsigned integers or empty lists of strings."""
        def text(value):
            encoded = value.encode()
            return struct.pack("<I", len(encoded)) + encoded + b"\0"

        def padded(data, to):
            return data + b"\0" * (-len(data) % to)

        body = b""
        for kind, value in zip(signature.replace("as", "A"), arguments):
            body = padded(body, 4) + (struct.pack("<I", value) if kind == "u" else text(value) if kind == "s" else struct.pack("<I", 0))
            assert kind != "A" or not value
        fields = b""
        for code, kind, value in ((1, "o", path), (2, "s", interface), (3, "s", member), (6, "s", destination)):
            fields = padded(fields, 8) + bytes((code, 1)) + kind.encode() + b"\0" + text(value)
        if signature:
            fields = padded(fields, 8) + bytes((8, 1)) + b"g\0" + bytes((len(signature),)) + signature.encode() + b"\0"
        self.serial += 1
        self.socket.sendall(padded(struct.pack("<cBBBIII", b"l", CALL, 0, 1, len(body), self.serial, len(fields)) + fields, 8) + body)
        while True:
            message = self.read()
            if message.fields.get(REPLY_SERIAL) == self.serial and message.kind in (RETURN, ERROR):
                if message.kind == ERROR:
                    raise ConnectionError(f"{member}: {message.body}")
                return message.body


# MARK: The recorded bus

class Showing:
    """One call of `Notify`."""

    def __init__(self, bus, caller, pid, title, alerts):
        self.bus, self.caller, self.pid, self.alerts = bus, caller, pid, alerts
        # The agent's own notifications do not belong to the app and have no serial number.
        self.identifier, _, serial = title.rpartition(" ")
        self.identifier, self.serial = (self.identifier, int(serial)) if serial.isdigit() else (title, 0)
        self.number = self.server = self.answered = None
        # The reason why the agent may show the notification again with sound.
        self.excuse = None
        # The agent was killed before it recorded the number that the server gave the notification.
        self.is_number_lost = self.is_over = False
        self.is_used = False

    def __str__(self):
        return f"{self.identifier} {self.serial}" if self.serial else self.identifier


class Answer:
    """A user's response to a notification: a pressed button or a close."""

    def __init__(self, showing, action, receiver):
        self.showing, self.action, self.receiver = showing, action, receiver
        # The state of the response: "open", "heard" or "unheard". "heard" means that the ledger contains the response. "unheard"
        # means that the agent that received the response is dead.
        self.state = "open"
        # The reason why the response is "unheard".
        self.why = None
        self.time = time.monotonic()
        # The notification was removed at the same time. The app may or may not receive the response.
        self.is_optional = False
        self.is_judged = False

    def lose(self, why):
        self.state, self.why = "unheard", why


class Record:
    """The recorded traffic of all buses: shown notifications, notifications on the screen, and responses."""

    def __init__(self, log):
        self.lock = threading.Condition()
        self.log = log
        self.bus = 0
        self.owner = None
        self.is_connected = False
        self.count = 0
        self.calls, self.standing, self.showings, self.answers = {}, {}, [], []
        # For each bus and caller: the agent's process, and the number of its last message. `dead` contains the callers that have
        # disconnected from the bus.
        self.pids, self.last_sent, self.dead = {}, {}, set()
        self.taken_off = set()
        # The responses on a bus that was cut before the recorder received them.
        self.attempts = []
        self.error = None

    def write(self, text):
        self.log.write(f"{time.time():.3f} bus {self.bus} {text}\n")
        self.log.flush()

    def begin(self, path):
        """Records all messages from now on. Earlier, no notification can be shown on this bus, because no server is connected."""
        wire = Wire(path)
        wire.call(BUS, "/org/freedesktop/DBus", BUS + ".Monitoring", "BecomeMonitor", "asu", [], 0)
        wire.socket.settimeout(None)
        with self.lock:
            self.bus += 1
            self.owner, self.is_connected = None, True
            self.standing, self.dead = {}, set()
            self.write("a new bus")
        threading.Thread(target=self.listen, args=(wire,), daemon=True).start()

    def listen(self, wire):
        try:
            while True:
                message = wire.read()
                with self.lock:
                    self.count += 1
                    self.note(message)
                    self.lock.notify_all()
        except (ConnectionError, OSError):
            pass
        except Exception as error:
            self.error = error
        with self.lock:
            # If a caller has sent nothing after its last response, the bus may have been cut before it delivered this response.
            for showing in self.showings:
                if showing.bus == self.bus and showing.answered and showing.answered > self.last_sent[self.bus, showing.caller]:
                    showing.excuse = showing.excuse or "the bus was cut behind its answer"
            for (bus, _, _), showing in self.calls.items():
                if bus == self.bus:
                    showing.excuse = showing.excuse or "the bus was cut before an answer was recorded: perhaps it was not shown the first time"
            self.owner, self.is_connected, self.standing = None, False, {}
            self.write("the bus is gone")
            self.lock.notify_all()

    def note(self, message):
        fields, body = message.fields, message.body
        sender, destination, member = fields.get(SENDER), fields.get(DESTINATION), fields.get(MEMBER)
        if sender:
            self.last_sent[self.bus, sender] = self.count
        if message.kind == CALL and member == "Notify":
            name, replaced, _, title, _, _, hints, _ = body
            showing = Showing(self.bus, sender, hints.get("sender-pid"), title, "sound-name" in hints)
            self.pids[self.bus, sender] = showing.pid
            self.showings.append(showing)
            self.calls[self.bus, sender, message.serial] = showing
            self.write(f"{sender} (agent {showing.pid}) Notify \"{title}\" replacing {replaced} {'ALERT' if showing.alerts else 'quiet'}")
        elif message.kind in (RETURN, ERROR):
            showing = self.calls.pop((self.bus, destination, fields.get(REPLY_SERIAL)), None)
            if showing and message.kind == RETURN:
                showing.number, showing.server, showing.answered = body[0], sender, self.count
                self.standing[sender, showing.number] = showing
                self.write(f"{sender} answers {destination}: \"{showing}\" is {showing.number}")
            elif showing:
                self.write(f"{sender} answers {destination}: \"{showing}\" failed {body}")
        elif message.kind == CALL and member == "CloseNotification":
            self.write(f"{sender} CloseNotification {body[0]} ({self.standing.get((self.owner, body[0]))})")
        elif message.kind == SIGNAL and member == "NotificationClosed":
            showing = self.standing.pop((sender, body[0]), None)
            self.write(f"{sender} tells {destination}: closed {body[0]} \"{showing}\" reason {body[1]}")
            if body[1] == 2 and showing:
                self.note_answer(showing, DISMISSED, destination)
        elif message.kind == SIGNAL and member == "ActionInvoked":
            showing = self.standing.get((sender, body[0]))
            self.write(f"{sender} tells {destination}: pressed {body[0]} \"{showing}\" {body[1]}")
            if showing:
                self.note_answer(showing, KEYS[body[1]], destination)
        elif message.kind == SIGNAL and member == "NameOwnerChanged" and sender == BUS:
            name, old, new = body
            if name == SERVER:
                self.owner = new or None
                self.standing = {}
                self.write(f"the server is {new or 'gone'}")
            elif name.startswith(":"):
                if not new:
                    self.dead.add(name)
                    self.write(f"{name} left")

    def note_answer(self, showing, action, receiver):
        answer = Answer(showing, action, receiver)
        showing.is_used = True
        answer.is_optional = showing.identifier in self.taken_off
        self.answers.append(answer)
        if receiver in self.dead:
            answer.lose("no agent ran")

    def wait(self, seconds, is_so):
        """Waits until a condition is true. Returns whether the condition became true in this time."""
        with self.lock:
            return self.lock.wait_for(is_so, seconds)


# MARK: The desktop

class Desktop:
    """A screen, a bus with a fixed address, and dunst."""

    def __init__(self, folder, record):
        folder.mkdir()
        self.folder, self.record = folder, record
        self.path = folder / "bus"
        self.log = open(folder / "log", "ab")
        (folder / "bus.conf").write_text(
            f"<busconfig><type>session</type><listen>unix:path={self.path}</listen><policy context=\"default\">"
            "<allow send_destination=\"*\" eavesdrop=\"true\"/><allow eavesdrop=\"true\"/><allow own=\"*\"/></policy></busconfig>")
        # The program for dunst's menu. The program lists all lines, and chooses the first line that begins with the wanted text.
        (folder / "menu").write_text(
            f"#!/bin/sh\n{{ read -r token; IFS= read -r wanted; }} < '{folder}/choice'\nall=; chosen=\n"
            "while IFS= read -r line || [ -n \"$line\" ]; do\n    all=\"$all$line\n\"\n"
            "    case $line in \"$wanted\"*) [ -n \"$chosen\" ] || chosen=$line;; esac\ndone\n"
            f"printf '%s' \"$all\" > '{folder}/list.'$token\nprintf '%s' \"$chosen\" > '{folder}/chosen.'$token\n"
            f": > '{folder}/done.'$token\nprintf '%s\\n' \"$chosen\"\n")
        (folder / "menu").chmod(0o700)
        timeouts = "".join(f"[urgency_{level}]\ntimeout = 0\n" for level in ("low", "normal", "critical"))
        (folder / "dunstrc").write_text(f"[global]\ndmenu = {folder}/menu\nnotification_limit = 0\nstack_duplicates = false\n{timeouts}")
        # Without `-noreset`, Xvfb resets itself when its last client disconnects. During the reset it rejects new clients.
        reader, writer = os.pipe()
        self.environment = dict(os.environ, HOME=str(folder), DBUS_SESSION_BUS_ADDRESS=f"unix:path={self.path}")
        self.screen = self.begin(["Xvfb", "-displayfd", str(writer), "-screen", "0", "800x1000x24", "-nolisten", "tcp", "-noreset"], pass_fds=[writer])
        os.close(writer)
        with os.fdopen(reader) as numbers:
            self.environment["DISPLAY"] = ":" + numbers.readline().strip()
        self.bus = self.server = None
        self.tokens = 0
        self.start_bus()
        self.start_server()

    def begin(self, command, **more):
        return subprocess.Popen(command, env=self.environment, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL, **more)

    def start_bus(self):
        # The killed daemon has left its socket file. The next daemon replaces the file.
        self.path.unlink(missing_ok=True)
        self.bus = self.begin(["dbus-daemon", f"--config-file={self.folder}/bus.conf", "--nofork", "--nopidfile"])
        wait("a bus", 20, self.answers)
        self.record.begin(self.path)

    def answers(self):
        try:
            Wire(self.path).close()
            return True
        except OSError:
            return False

    def start_server(self):
        self.server = self.begin(["dunst", "-config", self.folder / "dunstrc"])
        if not self.record.wait(20, lambda: self.record.owner):
            raise TimeoutError("dunst did not take its name")

    def kill_server(self):
        self.server.kill()
        self.server.wait()
        if not self.record.wait(20, lambda: not self.record.owner):
            raise TimeoutError("dunst kept its name")

    def kill_bus(self):
        self.bus.kill()
        self.bus.wait()
        if not self.record.wait(20, lambda: not self.record.is_connected):
            raise TimeoutError("the bus lives on")
        self.server.kill()
        self.server.wait()

    def stop_server(self):
        self.server.send_signal(signal.SIGSTOP)

    def continue_server(self):
        self.server.send_signal(signal.SIGCONT)

    def ask(self, path, interface, member, *arguments):
        # In some cases dunst performs a call but sends no response.
        with Wire(self.path, 1) as wire:
            return wire.call(SERVER, path, interface, member, *arguments)

    def count(self):
        return sum(self.length(name) for name in ("displayedLength", "waitingLength"))

    def length(self, name):
        for _ in range(5):
            try:
                return self.ask(SERVER_PATH, BUS + ".Properties", "Get", "ss", "org.dunstproject.cmd0", name)[0]
            except TimeoutError:
                pass
        raise TimeoutError("dunst does not answer")

    def menu(self, wanted):
        """Lists dunst's menu and chooses the line that begins with `wanted`. Returns `None` if dunst did not open the menu."""
        self.tokens += 1
        (self.folder / "choice.new").write_text(f"{self.tokens}\n{wanted}\n")
        (self.folder / "choice.new").replace(self.folder / "choice")
        server = self.server
        done = self.folder / f"done.{self.tokens}"
        deadline = time.monotonic() + 5
        # While the last menu is closing, dunst refuses to open another menu.
        while not done.exists():
            if server.poll() is not None or time.monotonic() > deadline:
                return None
            try:
                self.ask(SERVER_PATH, "org.dunstproject.cmd0", "ContextMenuCall")
                wait("the menu", 0.25, lambda: done.exists() or server.poll() is not None)
            except TimeoutError:
                pass
        lines = (self.folder / f"list.{self.tokens}").read_text().splitlines()
        chosen = (self.folder / f"chosen.{self.tokens}").read_text()
        for name in ("done", "list", "chosen"):
            (self.folder / f"{name}.{self.tokens}").unlink()
        return lines, chosen

    def listed(self):
        """Returns the titles of the notifications on the screen by number, from dunst's menu."""
        if self.count() == 0:
            return {}
        menu = self.menu("nothing")
        if menu is None:
            raise TimeoutError("dunst shows no menu")
        found = {}
        for line in menu[0]:
            if line.startswith("#Open ("):
                title, _, rest = line[len("#Open ("):].rpartition(") [")
                found[int(rest.split(",")[0])] = title
        if len(found) != self.count():
            raise TimeoutError(f"dunst counts {self.count()} and lists {found}")
        return found

    def press(self, showing, label):
        """Presses a button. Returns whether the server sent the press on the bus."""
        key = {"Accept": "accept", "Later": "later", "Open": "default"}[label]
        showing.is_used = True
        try:
            menu = self.menu(f"#{label} ({showing}) [{showing.number},{key}]")
        except (OSError, ConnectionError):
            return False
        record = self.record
        if not menu or not menu[1]:
            return False
        told = lambda: any(answer.showing is showing for answer in record.answers)
        record.wait(3, lambda: told() or record.owner != showing.server or record.bus != showing.bus)
        with record.lock:
            if not told() and (record.bus != showing.bus or not record.is_connected):
                record.attempts.append((showing, ACTIONS[label]))
            return told()

    def close_first(self):
        record = self.record
        with record.lock:
            bus, there, known = record.bus, list(record.standing.values()), len(record.answers)
        try:
            self.ask(SERVER_PATH, "org.dunstproject.cmd0", "NotificationCloseLast")
        except (OSError, ConnectionError):
            pass
        record.wait(0.5, lambda: len(record.answers) > known or record.bus != bus or not record.is_connected)
        with record.lock:
            if len(record.answers) == known and (record.bus != bus or not record.is_connected):
                # One of these notifications may have been closed by the user.
                record.attempts += [(showing, DISMISSED) for showing in there]

    def stop(self):
        for process in (self.server, self.screen, self.bus):
            if process and process.poll() is None:
                process.kill()
                process.wait()


# MARK: The ground

class Ground:
    """A throw-away home, its agent, the requested notifications and the findings."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="restarts-"))
        self.events = open(self.folder / "events.log", "w")
        self.record = Record(self.events)
        self.desktop = Desktop(self.folder / "desktop", self.record)
        self.state = self.folder / "state" / "proving-ground"
        self.ledger = self.state / "agent.sqlite"
        self.log = self.folder / "handlers.log"
        self.log.touch()
        (self.folder / "run").mkdir(mode=0o700)
        # Launched apps do not start an agent. The test can therefore read the ledger between two agents.
        wrapper = self.folder / "background-agent"
        wrapper.write_text(f"#!/bin/sh\nPROVING_GROUND_NO_AGENT=1 exec '{BIN}/background-agent' \"$@\"\n")
        wrapper.chmod(0o700)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("DBUS_", "DISPLAY", "WAYLAND_", "XDG_"))}
        self.environment.update(
            HOME=str(self.folder), XDG_STATE_HOME=str(self.folder / "state"), XDG_RUNTIME_DIR=str(self.folder / "run"),
            PROVING_LOG=str(self.log), PROVING_FOLDER=str(self.folder), BACKGROUND_AGENT=str(wrapper),
            DISPLAY=self.desktop.environment["DISPLAY"], DBUS_SESSION_BUS_ADDRESS=self.desktop.environment["DBUS_SESSION_BUS_ADDRESS"])
        self.serials = self.badges = 0
        self.last, self.lock = {}, threading.Lock()
        self.judged_alerts = set()
        self.rows_seen, self.unmatched = 0, []
        self.tally, self.limits, self.findings, self.worst = (collections.Counter(), collections.Counter(), [], 0.0)
        self.pid = self.pidfd = None

    def say(self, text):
        with self.record.lock:
            self.record.write("-- " + text)

    # MARK: The app

    def run(self, *arguments, **environment):
        result = subprocess.run([BIN / "proving-ground", *map(str, arguments)], env=self.environment | environment, timeout=60,
                                capture_output=True, text=True)
        if result.returncode != 0:
            raise RuntimeError(f"proving-ground {arguments} ended with {result.returncode}: {result.stdout}{result.stderr}")

    def add(self, identifier, *pairs):
        with self.lock:
            self.serials += 1
            serial = self.serials
        with self.record.lock:
            self.record.taken_off.discard(identifier)
        self.last[identifier] = serial
        self.say(f"add {identifier} {serial} {' '.join(pairs)}")
        # The command does not start an agent, because the test starts the agents. Critical notifications are never combined into
        # a summary.
        self.run("notify", identifier, f"title={identifier} {serial}", "sound=message-new-instant", "level=3", *pairs, PROVING_GROUND_NO_AGENT="1")
        self.say(f"added {identifier} {serial}")
        return serial

    def take_off(self, identifier):
        with self.record.lock:
            self.record.taken_off.add(identifier)
            for answer in self.record.answers:
                if answer.state == "open" and answer.showing.identifier == identifier:
                    answer.is_optional = True
        self.last[identifier] = None
        self.say(f"take off {identifier}")
        self.run("take-off", identifier, PROVING_GROUND_NO_AGENT="1")
        self.say(f"took off {identifier}")

    def lines(self):
        return [line.split(" ", 2)[1:] for line in self.log.read_text().splitlines() if line.startswith("response ")]

    # MARK: The ledger

    def rows(self, query):
        # The ledger is opened read-only. If it were writable, the last connection to close would clean up after a killed agent.
        connection = sqlite3.connect(f"file:{self.ledger}?mode=ro", uri=True, timeout=10)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    def match(self):
        """Assigns each new response in the ledger to the oldest open press of the same notification and action."""
        rows = self.rows(f"SELECT id, notification, action FROM notificationResponse WHERE id > {self.rows_seen} ORDER BY id")
        with self.record.lock:
            self.rows_seen = max([self.rows_seen] + [row[0] for row in rows])
            left = []
            for number, identifier, action in self.unmatched + rows:
                for answer in self.record.answers:
                    if answer.state == "open" and (answer.showing.identifier, answer.action) == (identifier, action):
                        answer.state = "heard"
                        break
                else:
                    attempt = next((attempt for attempt in self.record.attempts if (attempt[0].identifier, attempt[1]) == (identifier, action)), None)
                    if not attempt:
                        left.append((number, identifier, action))
                        continue
                    self.record.attempts.remove(attempt)
                    answer = Answer(*attempt, None)
                    answer.state = "heard"
                    self.record.answers.append(answer)
            self.unmatched = left

    # MARK: The agent

    def agent_alive(self):
        return self.pid is not None and not select.select([self.pidfd], [], [], 0)[0]

    def start_agent(self, **curse):
        if self.agent_alive():
            return
        if self.pid is not None:
            self.bury()
        self.badges += 1
        self.say(f"start an agent {curse}")
        self.run("badge", self.badges, **curse)

        def fresh():
            for (value,) in self.rows("SELECT value FROM fact WHERE name = 'agent'"):
                pid = json.loads(value)["pid"]
                if pid == self.buried:
                    return None
                try:
                    descriptor = os.pidfd_open(pid)
                except ProcessLookupError:
                    # The agent has already been killed at its kill point.
                    return (pid, None)
                return (pid, descriptor)

        self.pid, self.pidfd = wait("an agent", 20, fresh)
        if self.pidfd is None:
            self.pidfd = os.open("/dev/null", os.O_RDONLY)
        self.say(f"agent {self.pid}")

    buried = None

    def bury(self):
        """Records the end of a dead agent. Responses that the agent received but did not write to the ledger become "unheard"."""
        pid, self.buried = self.pid, self.pid
        os.close(self.pidfd)
        self.pid = self.pidfd = None
        record = self.record
        # Waits until the recorder has received all messages of the agent.
        record.wait(5, lambda: not any(of == pid and bus == record.bus and name not in record.dead for (bus, name), of in record.pids.items()))
        self.match()
        known = {identifier: (json.loads(content)["title"], delivered, state, number) for identifier, content, delivered, state, number in
                 self.rows("SELECT identifier, content, deliveredAt, state, serverID FROM notification")}
        with record.lock:
            for showing in record.showings:
                title, delivered, state, number = known.get(showing.identifier, (None,) * 4)
                if showing.pid != pid or showing.is_over:
                    continue
                showing.is_over = True
                if showing.number != number and state not in ("closed", "withdrawn"):
                    showing.is_number_lost = True
                if title == str(showing) and delivered is None:
                    showing.excuse = showing.excuse or "the agent was killed between showing and writing it down"
            for answer in record.answers:
                if answer.state == "open" and record.pids.get((answer.showing.bus, answer.receiver)) == pid:
                    # A response normally takes only a short time. A response takes longer only if the agent waits for a stopped
                    # server.
                    lived = "in the next second" if time.monotonic() - answer.time < 1 else "more than a second later"
                    answer.lose(f"the agent was killed {lived}, before it wrote it down")
            record.write(f"-- agent {pid} is dead")

    def kill_agent(self):
        if not self.agent_alive():
            return False
        self.say(f"kill agent {self.pid}")
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        select.select([self.pidfd], [], [], 20)
        self.bury()
        return True


# MARK: What happens

class Passers(threading.Thread):
    """Acts as the app and the user at random moments during the restarts."""

    def __init__(self, ground, dice):
        super().__init__(daemon=True)
        self.ground, self.dice, self.is_over, self.error = ground, dice, threading.Event(), None

    def run(self):
        try:
            while not self.is_over.is_set():
                self.act()
                self.is_over.wait(self.dice.uniform(0, 0.12))
        except Exception as error:
            self.error = error

    def standing(self):
        record = self.ground.record
        with record.lock:
            return sorted((showing for showing in record.standing.values() if not showing.is_used), key=str)

    def act(self):
        ground, dice, standing = self.ground, self.dice, self.standing()
        kind = dice.choices(["new", "again", "trigger", "take off", "press", "close"], [24, 16, 10, 12, 22, 12])[0]
        known = [identifier for identifier, serial in sorted(ground.last.items()) if serial and identifier.startswith("n")]
        free = [f"n{number}" for number in range(14) if f"n{number}" not in known]
        ground.tally["act " + kind] += 1
        if kind in ("new", "trigger"):
            pairs = [f"seconds={dice.choice((0.5, 1, 2))}"] if kind == "trigger" else []
            ground.add(dice.choice(free or known), *pairs)
        elif kind == "again" and known:
            ground.add(dice.choice(known))
        elif kind == "take off" and known:
            ground.take_off(dice.choice(known))
        elif kind == "press" and standing:
            ground.desktop.press(dice.choice(standing), dice.choice(list(ACTIONS)))
        elif kind == "close" and standing:
            # If no agent were running, the closing of the notification would not be received.
            with ground.record.lock:
                is_heard = all(showing.caller not in ground.record.dead for showing in ground.record.standing.values())
            if is_heard:
                ground.desktop.close_first()


class Storm:
    """The restarts of one round."""

    def __init__(self, ground, dice):
        self.ground, self.desktop, self.dice, self.done = ground, ground.desktop, dice, 0

    def count(self, kind, number=1):
        self.ground.tally[kind] += number
        self.done += number
        self.ground.say(f"restart: {kind}")

    def pause(self, longest):
        time.sleep(self.dice.uniform(0, longest))

    def run(self, wanted):
        kinds = {self.server: 26, self.agent: 22, self.point: 22, self.bus: 7, self.server_without_agent: 8, self.bus_without_agent: 3,
                 self.between_agent: 6, self.between_server: 5, self.between_bus: 2, self.all: 2}
        while self.done < wanted:
            self.pause(0.35)
            if not self.ground.agent_alive():
                self.ground.start_agent()
            self.dice.choices(list(kinds), list(kinds.values()))[0]()
        self.ground.start_agent()

    def server(self):
        self.desktop.kill_server()
        self.pause(self.dice.choice((0, 0.4)))
        self.desktop.start_server()
        self.count("server")

    def agent(self):
        if self.ground.kill_agent():
            self.pause(self.dice.choice((0, 0.3)))
            self.ground.start_agent()
            self.count("agent")

    def point(self):
        """Starts an agent with a kill point. Kills the agent a moment later if it does not reach the point."""
        ground, name = self.ground, self.dice.choice(POINTS)
        point = f"{name}:{self.dice.choice((1, 1, 2) if 'Presented' not in name else (1, 2, 3, 5))}"
        if ground.kill_agent():
            self.count("agent")
        ground.start_agent(BACKGROUND_CRASH_AT=point)
        if select.select([ground.pidfd], [], [], self.dice.uniform(0.3, 2))[0]:
            ground.say(f"it died at {point}")
            ground.bury()
            self.count(f"agent at {point.split(':')[0]}")
        else:
            ground.kill_agent()
            self.count("agent")
        self.pause(self.dice.choice((0, 0.3)))
        ground.start_agent()

    def bus(self):
        self.desktop.kill_bus()
        self.pause(self.dice.choice((0, 0.5)))
        self.desktop.start_bus()
        self.pause(self.dice.choice((0, 0.3)))
        self.desktop.start_server()
        self.count("bus")

    def server_without_agent(self):
        if self.ground.kill_agent():
            self.count("agent")
        self.pause(0.2)
        self.desktop.kill_server()
        self.pause(0.2)
        order = [self.desktop.start_server, self.ground.start_agent]
        # In some rounds the agent starts first, and finds no server.
        if self.dice.random() < 0.4:
            order.reverse()
        for start in order:
            start()
        self.count("server while the agent is dead")

    def bus_without_agent(self):
        if self.ground.kill_agent():
            self.count("agent")
        self.bus()
        self.ground.start_agent()

    def all(self):
        self.ground.kill_agent()
        self.bus()
        self.ground.start_agent()
        self.desktop.kill_server()
        self.desktop.start_server()
        self.count("server")
        self.count("agent")

    def hold(self):
        """Stops the server and adds a notification, so that the server does not respond to a `Notify`. Returns whether the agent called it."""
        ground, record = self.ground, self.ground.record
        self.desktop.stop_server()
        serial = ground.add(f"m{self.dice.randrange(4)}")
        return record.wait(2, lambda: any(showing.serial == serial for showing in record.showings))

    def between_agent(self):
        is_held = self.hold()
        self.pause(self.dice.choice((0, 0.1)))
        if self.ground.kill_agent():
            self.count("agent between Notify and its answer" if is_held else "agent")
        self.desktop.continue_server()
        self.pause(self.dice.choice((0, 0.2)))
        self.ground.start_agent()

    def between_server(self):
        is_held = self.hold()
        self.desktop.kill_server()
        self.pause(self.dice.choice((0, 0.2)))
        self.desktop.start_server()
        self.count("server between Notify and its answer" if is_held else "server")

    def between_bus(self):
        is_held = self.hold()
        self.desktop.kill_bus()
        self.pause(self.dice.choice((0, 0.2)))
        self.desktop.start_bus()
        self.desktop.start_server()
        self.count("bus between Notify and its answer" if is_held else "bus")


# MARK: Judging

class Judge:
    def __init__(self, ground):
        self.ground, self.record, self.desktop = ground, ground.record, ground.desktop

    def find(self, text):
        self.found.append(text)

    def settle_answers(self):
        """Marks open responses on a cut bus as "unheard", because an agent may not have received them."""
        self.ground.match()
        with self.record.lock:
            for answer in self.record.answers:
                if answer.state == "open" and (answer.showing.bus != self.record.bus or answer.receiver in self.record.dead):
                    answer.lose("the bus was cut before the agent wrote it down")

    def expected(self):
        """Returns the notifications that must be on the screen, by identifier, and the notifications that may be on the screen."""
        must, may = {}, set()
        with self.record.lock:
            for identifier, serial in self.ground.last.items():
                if serial is None:
                    continue
                answers = [answer for answer in self.record.answers if (answer.showing.identifier, answer.showing.serial) == (identifier, serial)]
                if any(answer.state == "heard" for answer in answers):
                    continue
                if any(answer.action == DISMISSED for answer in answers):
                    may.add((identifier, serial))
                else:
                    must[identifier] = serial
        return must, may

    def standing(self):
        with self.record.lock:
            return collections.Counter((showing.identifier, showing.serial) for showing in self.record.standing.values())

    def is_quiet(self):
        """Returns whether nothing is in progress in the ledger, the app received every response, and the screen is correct."""
        self.settle_answers()
        moving = self.ground.rows(
            "SELECT (SELECT count(*) FROM notification WHERE state IN ('pending', 'presenting', 'withdrawing'))"
            " + (SELECT count(*) FROM notificationResponse WHERE deliveredAt IS NULL) + (SELECT count(*) FROM launch WHERE endedAt IS NULL)")
        if moving[0][0] or self.unanswered():
            return False
        must, may = self.expected()
        standing = self.standing()
        # If an agent died, its notifications must be shown again, because the server sends presses to the caller that showed the
        # notification.
        with self.record.lock:
            if any(showing.caller in self.record.dead for showing in self.record.standing.values()):
                return False
        return set(must.items()) <= set(standing) <= set(must.items()) | may and sum(standing.values()) == len(standing)

    def unanswered(self):
        with self.record.lock:
            return [answer for answer in self.record.answers if answer.state == "open" and not answer.is_optional]

    def wait_for_quiet(self, seconds):
        begun = time.monotonic()
        while not self.is_quiet():
            if time.monotonic() > begun + seconds:
                return False
            self.record.wait(0.03, lambda: False)
        self.ground.worst = max(self.ground.worst, time.monotonic() - begun)
        return True

    def judge(self):
        """Waits for a quiet state and returns the findings."""
        self.found = []
        self.wait_for_quiet(QUIET_LIMIT)
        self.judge_screen()
        self.judge_answers()
        self.judge_alerts()
        if not self.found:
            self.press_some()
        return self.found

    def judge_screen(self):
        must, may = self.expected()
        listed = self.desktop.listed()
        there = collections.Counter(listed.values())
        with self.record.lock:
            model = collections.Counter(map(str, self.record.standing.values()))
        if model != there:
            self.find(f"RECORD: dunst lists {dict(there)}, the recorded bus has {dict(model)}")
        identifiers = collections.Counter(title.rsplit(" ", 1)[0] for title in there.elements())
        for identifier, count in identifiers.items():
            if count > 1:
                self.find(f"DOUBLED {identifier}: {[title for title in there.elements() if title.rsplit(' ', 1)[0] == identifier]}")
        for identifier, serial in must.items():
            if f"{identifier} {serial}" not in there:
                self.find(f"LOST {identifier} {serial}; ledger {self.row(identifier)}")
        allowed = {f"{identifier} {serial}" for identifier, serial in [*must.items(), *may]}
        for title in there:
            if title not in allowed:
                with self.record.lock:
                    is_lost = any(showing.is_number_lost for showing in self.record.standing.values() if str(showing) == title)
                why = "the agent that showed it was killed before it wrote down its number" if is_lost else "its number was written down"
                self.find(f"GHOST {title}: {why}; ledger {self.row(title.rsplit(' ', 1)[0])}")
        for identifier, serial in must.items():
            with self.record.lock:
                shown = [showing for showing in self.record.showings if (showing.identifier, showing.serial) == (identifier, serial)]
            numbers = [number for number, title in listed.items() if title == f"{identifier} {serial}"]
            if numbers and not self.ground.rows(
                    f"SELECT 1 FROM notification WHERE identifier = '{identifier}' AND state = 'delivered' AND serverID = {numbers[0]}"):
                self.find(f"DEAF {identifier} {serial}, which stands there as {numbers[0]}; ledger {self.row(identifier)}")
            if f"{identifier} {serial}" in there and not any(showing.alerts and (showing.answered or showing.excuse) for showing in shown):
                self.find(f"NEVER ALERTED {identifier} {serial}")

    def row(self, identifier):
        return self.ground.rows(
            f"SELECT state, serverID, deliveredAt, endedAt, trouble, revision, json_extract(content, '$.title') FROM notification "
            f"WHERE identifier = '{identifier}'")

    def judge_answers(self):
        limits = self.ground.limits
        with self.record.lock:
            answers = list(self.record.answers)
        for answer in answers:
            if answer.state == "heard" or answer.is_judged:
                continue
            what = "closed" if answer.action == DISMISSED else "pressed"
            if answer.state == "unheard":
                limits[f"{what}: {answer.why}"] += 1
            elif answer.is_optional:
                limits[f"{what} while it was being taken off, and not told"] += 1
            elif what == "closed":
                limits["closed while it was being shown again, and not told"] += 1
            else:
                self.find(f"DEAD BUTTON {answer.showing} {answer.action}; ledger {self.row(answer.showing.identifier)}")
            answer.is_judged = True
        for row in self.ground.unmatched:
            self.find(f"RESPONSE {row} to a press that nobody made")
        self.ground.unmatched = []
        self.judge_lines()

    def judge_lines(self):
        rows = collections.Counter(tuple(row) for row in self.ground.rows("SELECT notification, action FROM notificationResponse"))
        lines = collections.Counter(tuple(line) for line in self.ground.lines())
        if rows != lines and not self.ground.rows("SELECT 1 FROM notificationResponse WHERE deliveredAt IS NULL"):
            self.find(f"RESPONSE: too often told {dict(lines - rows)}, never told {dict(rows - lines)}")

    def judge_alerts(self):
        shown = collections.defaultdict(list)
        with self.record.lock:
            showings = list(self.record.showings)
        for showing in showings:
            # If the server was killed before it responded, the notification does not count as shown.
            if showing.alerts and (showing.answered or showing.excuse):
                shown[showing.identifier, showing.serial].append(showing)
        for key, times in shown.items():
            for number, showing in enumerate(times[:-1]):
                if (key, number) in self.ground.judged_alerts:
                    continue
                self.ground.judged_alerts.add((key, number))
                if showing.excuse:
                    self.ground.limits[f"alerted again: {showing.excuse}"] += 1
                else:
                    self.find(f"ALERTED TWICE {key[0]} {key[1]}: as {showing.number} of {showing.server} by {showing.pid}, again by {times[number + 1].pid}")

    def press_some(self):
        """Presses up to three buttons. Within ten seconds, the app must receive each press and the notifications must leave the screen."""
        ground, record, dice = self.ground, self.record, self.dice
        with record.lock:
            there = sorted((showing for showing in record.standing.values()), key=str)
        for showing in dice.sample(there, min(3, len(there))):
            label = dice.choice(list(ACTIONS))
            ground.tally["act press at rest"] += 1
            if not self.desktop.press(showing, label):
                self.find(f"DEAD BUTTON {showing} {label}: dunst did not tell it to anybody")
            elif any(answer.showing is showing and answer.state == "unheard" for answer in record.answers):
                self.find(f"DEAD BUTTON {showing} {label}: told to {showing.caller}, of agent {showing.pid}, which is dead")
        if not self.wait_for_quiet(PRESS_LIMIT):
            self.find(f"DEAD BUTTON or GHOST after presses at rest: not told {[f'{a.showing} {a.action}' for a in self.unanswered()]}")
            self.judge_screen()
        self.judge_answers()

    def begin_afresh(self):
        """Resets the screen and the record after a finding, so that the same problem is not found again."""
        ground = self.ground
        for identifier in list(ground.last):
            ground.take_off(identifier)
        self.desktop.kill_server()
        self.desktop.start_server()
        ground.match()
        ground.unmatched = []
        ground.last = {}
        with self.record.lock:
            self.record.answers, self.record.showings, self.record.attempts = [], [], []
        self.wait_for_quiet(QUIET_LIMIT)


def keep(ground, number, found):
    """Keeps the logs of a round with findings."""
    folder = ground.folder / f"round-{number}"
    folder.mkdir()
    (folder / "found").write_text("\n".join(found) + "\n")
    shutil.copy(ground.folder / "events.log", folder)
    shutil.copy(ground.state / "agent.log", folder)
    shutil.copy(ground.log, folder)


def main():
    print(f"seed {SEED}", flush=True)
    # If the script receives SIGTERM, it also ends its processes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    ground, begun, rounds, done = Ground(), time.monotonic(), 0, 0
    judge = Judge(ground)
    try:
        # The first command creates the ledger.
        ground.run("badge", 0, PROVING_GROUND_NO_AGENT="1")
        while done < RESTARTS and len(ground.findings) < FINDINGS_LIMIT:
            dice = random.Random(f"{SEED} {rounds}")
            ground.say(f"round {rounds}")
            ground.start_agent()
            passers = Passers(ground, random.Random(f"{SEED} {rounds} passers"))
            storm = Storm(ground, dice)
            passers.start()
            try:
                storm.run(min(dice.choice((1, 2, 3, 4, 6, 8)), RESTARTS - done))
            finally:
                passers.is_over.set()
                passers.join(60)
            for error in filter(None, (passers.error, ground.record.error)):
                raise error
            done += storm.done
            ground.say("quiet")
            ground.start_agent()
            judge.dice = dice
            found = judge.judge()
            for finding in found:
                ground.findings.append(f"round {rounds}: {finding}")
                print(f"FOUND {ground.findings[-1]}", flush=True)
            if found:
                keep(ground, rounds, found)
                judge.begin_afresh()
            rounds += 1
            if rounds % 10 == 0:
                print(f"round {rounds}: {done} restarts, {ground.serials} added, {time.monotonic() - begun:.0f} s", flush=True)
    except (TimeoutError, RuntimeError, OSError, subprocess.SubprocessError, sqlite3.Error) as error:
        ground.findings.append(f"round {rounds}: {type(error).__name__}: {error}")
        print(f"FOUND {ground.findings[-1]}", flush=True)
    finally:
        ground.kill_agent()
        ground.desktop.stop()
    print(f"{done} restarts in {rounds} rounds, {ground.serials} added, {len(ground.lines())} responses, {time.monotonic() - begun:.0f} s; "
          f"the longest wait for quiet took {ground.worst:.1f} s")
    for title, counts in (("restarts", {k: v for k, v in ground.tally.items() if not k.startswith("act ")}),
                          ("done meanwhile", {k[4:]: v for k, v in ground.tally.items() if k.startswith("act ")}),
                          ("nobody can promise", ground.limits),
                          ("found", collections.Counter(finding.split(": ", 1)[1].split(" ")[0] for finding in ground.findings))):
        print(f"{title}: " + ", ".join(f"{count} × {what}" for what, count in sorted(counts.items())))
    for finding in ground.findings:
        print(f"FOUND {finding}")
    if ground.findings:
        print(f"seed {SEED}; everything is kept in {ground.folder}")
        raise SystemExit(1)
    print("held: nothing lost, doubled or left over, no alert twice, no dead button")
    shutil.rmtree(ground.folder)


if __name__ == "__main__":
    main()
