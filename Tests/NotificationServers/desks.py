"""Desktops with one real notification server each: a private bus, a display without a screen, and the server, in a home of their own.

A desk starts its server, kills it, freezes it, and does what a person does: presses a button, presses the notification, closes it,
types. Where a button is drawn is measured from the edges of what differs from the empty desktop. Everything that a desk starts ends with
it, also when the harness itself is killed.
"""
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from bus import NAME, Bus, No, until
from packages import version
from screen import Picture

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")
PR_SET_PDEATHSIG = 1
# Of every desk: the bus, and who listens on it.
COMMON = ("dbus", "libglib2.0-bin", "python3-dbus", "python3-gi", "imagemagick")
X11 = (*COMMON, "xvfb", "xdotool")
SWAY = (*COMMON, "sway", "grim")


class Processes:
    """What was started, in order; each ends with this process, whatever happens to it."""

    def __init__(self, folder):
        self.folder, self.all = folder, []

    def start(self, name, command, environment=None, **settings):
        parent = ctypes.CDLL(None)
        log = open(self.folder / f"{name}.log", "ab")
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            preexec_fn=lambda: parent.prctl(PR_SET_PDEATHSIG, signal.SIGKILL), **settings)
        log.close()
        self.all.append(process)
        return process

    def signal(self, process, number):
        if process is None:
            return
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass

    def kill(self, process):
        if process is None:
            return
        self.signal(process, signal.SIGKILL)
        process.wait()
        if process in self.all:
            self.all.remove(process)

    def end(self):
        for process in reversed(list(self.all)):
            self.kill(process)


class Desk:
    """One desktop. A subclass says what differs."""

    name = ""
    # What GetServerInformation answers.
    server_name = ""
    packages = ()
    # Patterns of files in /usr/share/dbus-1/services.
    services = ()
    size = (1000, 700)
    # Where the pointer rests: a pointer over a notification keeps it there.
    rest = (20, 400)
    # Where buttons are, from the left and top edges of what is shown, or from right and bottom where negative; None: there is none.
    spots = {}
    # Seconds in which it has started.
    patience = 20
    # Seconds that it needs between being told and having drawn.
    drawing = 0.6
    # Seconds after which a notification leaves by itself; None: it does not.
    expires = None
    # There is one to look at.
    has_screen = True
    # What it does with a second one of the same words within a second; None: it shows both.
    same_words = None

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"desk-{self.name}-"))
        self.processes = Processes(self.folder)
        for part in ("run", "home", "home/.config", "homes"):
            (self.folder / part).mkdir(mode=0o700)
        kept = {key: value for key, value in os.environ.items()
                if not key.startswith(("DBUS_", "XDG_", "WAYLAND_", "DISPLAY", "GTK_", "QT_"))}
        self.environment = kept | {
            "HOME": str(self.folder / "home"), "XDG_RUNTIME_DIR": str(self.folder / "run"),
            "XDG_CONFIG_HOME": str(self.folder / "home/.config"), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "NO_AT_BRIDGE": "1",
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.folder}/run/bus"}
        self.server = self.empty = None
        self.information, self.capabilities = ["", "", "", ""], []
        self.bus = None

    def __enter__(self):
        try:
            self.start_display()
            self.bus = Bus(self.folder, self.processes, self.services, self.environment)
            self.bus.start()
            self.configure()
            self.start_server()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        for pid in self.processes_of_homes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.processes.end()
        if os.environ.get("KEEP_DESKS"):
            print(f"kept: {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def processes_of_homes(self):
        """Agents, and what a bus started here, live in sessions of their own: known by the folder in their environment."""
        mark, own, found = str(self.folder).encode(), os.getpid(), []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == own:
                continue
            try:
                if mark in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                pass
        return found

    # What a subclass says.

    def start_display(self):
        raise NotImplementedError

    def configure(self):
        """Writes the server's settings."""

    def command(self):
        """Of the server."""
        raise NotImplementedError

    def picture(self):
        raise NotImplementedError

    def click(self, x, y, button=1):
        raise NotImplementedError

    def move(self, x, y):
        raise NotImplementedError

    # The server.

    def start_server(self):
        self.server = self.processes.start("server", self.command(), self.environment)
        self.wait_for_server()

    def wait_for_server(self):
        owner = until(self.bus.owner, self.patience, "the server does not start")
        self.bus.servers.add(owner)
        answer = self.bus.ask_server("GetServerInformation")
        self.information = [part.strip("'\" ") for part in answer.stdout.strip()[1:-2].split("', '")]
        self.capabilities = [word for word in self.bus.ask_server("GetCapabilities").stdout.split("'")[1::2]]
        self.settle()

    def settle(self):
        """Until nothing moves on the empty desktop."""
        if not self.has_screen:
            return
        self.move(*self.rest)
        # Later servers are given at once what stands there.
        if self.empty is not None:
            return
        last = self.picture()
        for _ in range(40):
            time.sleep(0.15)
            now = self.picture()
            if now.data == last.data:
                break
            last = now
        self.empty = last

    def kill_server(self):
        self.processes.kill(self.server)
        self.server = None
        until(lambda: self.bus.owner() is None, 10, "the server's name stays on the bus")
        self.bus.note_server_gone()

    def restart_server(self):
        if self.server:
            self.kill_server()
        self.start_server()

    def restart_bus(self):
        """As at a logout: the bus, all that was on it, and then all anew at the same address."""
        self.processes.kill(self.server)
        self.server = None
        self.bus.kill()
        self.bus.start()
        self.start_server()

    def freeze(self):
        self.processes.signal(self.server, signal.SIGSTOP)

    def thaw(self):
        self.processes.signal(self.server, signal.SIGCONT)

    def answers(self):
        """The server says something within 2 s."""
        return self.bus.ask("GetServerInformation", destination=NAME, path="/org/freedesktop/Notifications", interface=NAME,
                            seconds=2).returncode == 0

    def is_alive(self):
        return self.server is not None and self.server.poll() is None and self.bus.owner() is not None

    # The screen.

    @property
    def region(self):
        """Where notifications are looked for: left, top, right, bottom."""
        return (0, 0, *self.size)

    def box(self):
        """What is shown; None: nothing."""
        return self.picture().difference(self.empty, self.region) if self.has_screen else None

    def still_box(self):
        """What is shown once it has not moved for half a second: a busy machine draws it in parts, and its buttons come last."""
        last, since = None, time.monotonic()
        end = since + 6
        while time.monotonic() < end:
            now = self.box()
            if now is None or now != last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since >= 0.5:
                return now
            time.sleep(0.12)
        return last

    def is_shown(self):
        """Something stands on the screen, or in the place where the desktop keeps what stood there."""
        return self.box() is not None

    def shows_picture(self):
        """The magenta picture is drawn."""
        box = self.still_box()
        return box is not None and self.picture().count_magenta(box) > 60

    def save(self, path):
        if self.has_screen:
            self.picture().save(path)

    # A person.

    def at(self, spot, box=None):
        if spot not in self.spots:
            raise No("nothing of it can be pressed")
        box = box or self.still_box()
        if box is None:
            raise No("nothing is on the screen to be pressed")
        x, y = self.spots[spot]
        return (box[0] + x if x >= 0 else box[2] + x), (box[1] + y if y >= 0 else box[3] + y)

    def press(self, key):
        """Presses a button, by its key: accept or later."""
        self.click(*self.at(key))
        self.move(*self.rest)

    def press_twice(self, key):
        """As fast as a person can."""
        x, y = self.at(key)
        self.click(x, y)
        self.click(x, y)
        self.move(*self.rest)

    def press_body(self):
        self.click(*self.at("body"))
        self.move(*self.rest)

    def close(self):
        self.click(*self.at("close"), button=self.spots.get("close button", 1))
        self.move(*self.rest)

    def type_reply(self, text):
        raise No("has no field")

    def stir(self):
        """Shows that somebody is there, where a desktop looks for that before it takes something off the screen."""


class X11Desk(Desk):
    """Xvfb without a window manager."""

    depth = 24

    def start_display(self):
        reading, writing = os.pipe()
        self.processes.start(
            "xvfb", ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{self.size[0]}x{self.size[1]}x{self.depth}", "-nolisten", "tcp"],
            self.environment, pass_fds=[writing])
        os.close(writing)
        with os.fdopen(reading) as pipe:
            # The whole line: it ends where it cannot write all of that.
            number = pipe.readline().strip()
        if not number:
            raise No("Xvfb does not start")
        self.environment |= {"DISPLAY": f":{number}", "XDG_SESSION_TYPE": "x11"}

    def run(self, *command):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True)

    def picture(self):
        return Picture.of_file(["import", "-silent", "-window", "root", "-depth", "8", "ppm:-"], self.environment)

    def move(self, x, y):
        self.run("xdotool", "mousemove", str(x), str(y))

    def click(self, x, y, button=1):
        self.run("xdotool", "mousemove", str(x - 2), str(y), "sleep", "0.1", "mousemove", str(x), str(y), "sleep", "0.15", "click", str(button),
                 "sleep", "0.05")


class Menu:
    """Takes the place of dmenu: chooses the line that begins with the word in a file, as a person would with the arrow keys."""

    def __init__(self, folder):
        self.choice, self.program = folder / "choice", folder / "choose"
        self.program.write_text(f'#!/bin/sh\ngrep -m 1 -i -- "$(cat {self.choice})"\n')
        self.program.chmod(0o755)

    def choose(self, word):
        self.choice.write_text(word)


class Dunst(X11Desk):
    name, server_name = "dunst", "dunst"
    packages = ("dunst", *X11)
    expires = 4
    # Buttons are in a menu that the right button of the mouse opens.
    spots = {"body": (40, 14), "accept": (40, 14), "later": (40, 14), "close": (40, 14), "close button": 1}

    def configure(self):
        self.menu = Menu(self.folder)
        settings = {"dmenu = .*": f"dmenu = {self.menu.program}", "mouse_right_click = .*": "mouse_right_click = context",
                    "timeout = 10": f"timeout = {self.expires}"}
        # As Debian has it, but for these.
        text = pathlib.Path("/etc/xdg/dunst/dunstrc").read_text()
        for old, new in settings.items():
            text = re.sub(rf"^( *){old}$", rf"\g<1>{new}", text, flags=re.MULTILINE)
        (self.folder / "dunstrc").write_text(text)

    def command(self):
        return ["dunst", "-conf", str(self.folder / "dunstrc")]

    def press(self, key):
        self.menu.choose(key)
        self.click(*self.at(key), button=3)
        self.move(*self.rest)

    def press_twice(self, key):
        self.menu.choose(key)
        x, y = self.at(key)
        self.click(x, y, button=3)
        self.click(x, y, button=3)
        self.move(*self.rest)

    def press_body(self):
        self.click(*self.at("body"), button=2)
        self.move(*self.rest)


class Xfce(X11Desk):
    name, server_name = "xfce4-notifyd", "Xfce Notify Daemon"
    packages = ("xfce4-notifyd", "xfconf", *X11)
    services = ("org.xfce.Xfconf.service",)
    expires = 10
    spots = {"body": (60, 20), "accept": (-149, -31), "later": (-57, -31), "close": (60, 20), "close button": 3}

    def command(self):
        return [str(LIBRARIES / "xfce4/notifyd/xfce4-notifyd")]


class Mate(X11Desk):
    name, server_name = "mate", "Notification Daemon"
    packages = ("mate-notification-daemon", *X11)
    spots = {"body": (100, 60), "accept": (-124, -27), "later": (-65, -27), "close": (-32, 27)}
    expires = 10

    def command(self):
        return ["/usr/lib/mate-notification-daemon/mate-notification-daemon"]


class NotificationDaemon(X11Desk):
    name, server_name = "notification-daemon", "Notification Daemon"
    packages = ("notification-daemon", *X11)
    spots = {"body": (100, 55), "accept": (-138, -37), "later": (-79, -37), "close": (-22, 27)}
    expires = 10

    def command(self):
        return ["/usr/lib/notification-daemon/notification-daemon"]


class Lxqt(X11Desk):
    name, server_name = "lxqt", "lxqt-notificationd"
    same_words = "the same words are shown once"
    packages = ("lxqt-notificationd", *X11)
    spots = {"body": (60, 60), "accept": (-211, -33), "later": (-103, -33), "close": (-23, 24)}
    expires = 10

    def command(self):
        return ["lxqt-notificationd"]


class NotifyOsd(X11Desk):
    name, server_name = "notify-osd", "notify-osd"
    packages = ("notify-osd", "xcompmgr", *X11)
    expires = 10

    def start_display(self):
        super().start_display()
        # Its bubbles are drawn by a compositor or not at all.
        self.processes.start("compositor", ["xcompmgr"], self.environment)

    def command(self):
        return [str(LIBRARIES / "notify-osd")]


class SwayDesk(Desk):
    """Sway without a screen, which refuses to run as root: it runs as nobody then."""

    def start_display(self):
        place = self.folder / "wayland"
        place.mkdir(mode=0o700)
        (place / "sway.conf").write_text(
            f"output HEADLESS-1 resolution {self.size[0]}x{self.size[1]}\noutput * bg #336699 solid_color\nseat * hide_cursor 0\n")
        command = ["sway", "-c", str(place / "sway.conf")]
        if os.getuid() == 0:
            self.folder.chmod(0o711)
            for path in (place, place / "sway.conf"):
                os.chown(path, 65534, 65534)
            command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
        self.processes.start("sway", command, {
            "PATH": os.environ["PATH"], "HOME": str(place), "XDG_RUNTIME_DIR": str(place), "WLR_BACKENDS": "headless",
            "WLR_RENDERER": "pixman", "WLR_LIBINPUT_NO_DEVICES": "1"})
        sockets = until(lambda: [path for path in place.glob("wayland-*") if path.suffix != ".lock"], 15, "sway does not start")
        self.socket = str(sockets[0])
        self.environment |= {"WAYLAND_DISPLAY": self.socket, "XDG_SESSION_TYPE": "wayland", "XDG_CURRENT_DESKTOP": "sway"}
        until(lambda: subprocess.run(["grim", "-t", "ppm", "-"], env=self.environment, capture_output=True).returncode == 0, 15,
              "sway draws nothing")

    def picture(self):
        return Picture.of_file(["grim", "-t", "ppm", "-"], self.environment)

    def move(self, x, y):
        VirtualPointer(self.socket, self.size).act(x, y, None)

    def click(self, x, y, button=1):
        VirtualPointer(self.socket, self.size).act(x, y, {1: 272, 2: 274, 3: 273}[button])


class VirtualPointer:
    """A mouse on a Wayland seat that has none, by zwlr_virtual_pointer_manager_v1."""

    INTERFACE = "zwlr_virtual_pointer_manager_v1"

    def __init__(self, path, size):
        self.size = size
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.settimeout(10)
        self.connection.connect(path)
        registry, callback, manager = 2, 3, 4
        self.request(1, 1, struct.pack("<I", registry))
        self.request(1, 0, struct.pack("<I", callback))
        globals_ = self.read_globals(registry, callback)
        name = globals_[self.INTERFACE].to_bytes(4, "little")
        self.request(registry, 0, name + self.text(self.INTERFACE) + struct.pack("<II", 1, manager))
        self.pointer = 5
        self.request(manager, 0, struct.pack("<II", 0, self.pointer))

    def request(self, thing, number, body=b""):
        self.connection.sendall(struct.pack("<IHH", thing, number, 8 + len(body)) + body)

    @staticmethod
    def text(words):
        data = words.encode() + b"\0"
        return struct.pack("<I", len(data)) + data + b"\0" * (-len(data) % 4)

    def read_globals(self, registry, callback):
        data, found = b"", {}
        while True:
            data += self.connection.recv(65536)
            while len(data) >= 8:
                thing, number, size = struct.unpack("<IHH", data[:8])
                if len(data) < size:
                    break
                body, data = data[8:size], data[size:]
                if thing == registry and number == 0:
                    name, length = struct.unpack("<II", body[:8])
                    found[body[8:8 + length - 1].decode()] = name
                if thing == callback:
                    return found

    def act(self, x, y, button):
        """Moves there; presses and lets go of a button of the mouse."""
        def now():
            return int(time.monotonic() * 1000) & 0xffffffff

        time.sleep(0.25)
        for offset in (3, 0):
            self.request(self.pointer, 1, struct.pack("<IIIII", now(), max(0, x - offset), y, *self.size))
            self.request(self.pointer, 4)
            time.sleep(0.12)
        if button:
            for state in (1, 0):
                self.request(self.pointer, 2, struct.pack("<III", now(), button, state))
                self.request(self.pointer, 4)
                time.sleep(0.08)
        time.sleep(0.15)
        self.connection.close()


class Mako(SwayDesk):
    name, server_name = "mako", "mako"
    packages = ("mako-notifier", *SWAY)
    expires = 4
    # Buttons are in a menu that the middle button of the mouse opens.
    spots = {"body": (60, 20), "accept": (60, 20), "later": (60, 20), "close": (60, 20), "close button": 3}

    def configure(self):
        self.menu = Menu(self.folder)
        (self.folder / "mako.conf").write_text(
            f"default-timeout=4000\non-button-left=invoke-default-action\non-button-right=dismiss\n"
            f'on-button-middle=exec makoctl menu -n "$id" {self.menu.program}\n')

    def command(self):
        return ["mako", "-c", str(self.folder / "mako.conf")]

    def press(self, key):
        self.menu.choose(key)
        self.click(*self.at(key), button=2)
        self.move(*self.rest)

    def press_twice(self, key):
        self.menu.choose(key)
        x, y = self.at(key)
        self.click(x, y, button=2)
        self.click(x, y, button=2)
        self.move(*self.rest)


class Swaync(SwayDesk):
    name, server_name = "swaync", "SwayNotificationCenter"
    packages = ("sway-notification-center", *SWAY)
    expires = 10
    spots = {"body": (60, 30), "accept": (-369, -30), "later": (-131, -30), "close": (-28, 22)}

    def command(self):
        return ["swaync"]


class Gnome(Desk):
    """GNOME Shell on a screen that it makes itself, with a private system bus on which a mock plays logind."""

    name, server_name = "gnome-shell", "gnome-shell"
    packages = ("gnome-shell", "gjs", "python3-dbusmock", *COMMON)
    services = ("org.gnome.Shell.Notifications.service",)
    patience, drawing = 60, 1.2
    spots = {"body": (120, 45), "accept": (-379, -31), "later": (-129, -31), "close": (-31, 25)}
    expires = 4

    @property
    def region(self):
        # Without the bar with the clock.
        return (0, 34, *self.size)

    def start_display(self):
        self.environment |= {
            "GSETTINGS_BACKEND": "memory", "XDG_CURRENT_DESKTOP": "GNOME", "LIBGL_ALWAYS_SOFTWARE": "1", "XDG_SESSION_TYPE": "wayland",
            "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={self.folder}/run/system-bus"}

    def configure(self):
        place = self.folder / "system"
        place.mkdir()
        (place / "bus.conf").write_text((self.folder / "bus.conf").read_text().replace("/run/bus<", "/run/system-bus<"))
        self.processes.start("system-bus", ["dbus-daemon", f"--config-file={place}/bus.conf", "--nofork", "--nopidfile"], self.environment)
        until((self.folder / "run/system-bus").exists, 10, "the system bus does not start")
        self.processes.start("logind", ["/usr/bin/python3", "-m", "dbusmock", "--system", "--template", "logind"], self.environment)
        time.sleep(1)

    def command(self):
        return ["gnome-shell", "--headless", "--virtual-monitor", f"{self.size[0]}x{self.size[1]}", "--wayland-display", "gnome-0", "--no-x11",
                "--unsafe-mode"]

    def shell(self, script):
        answer = self.bus.ask("Eval", script, destination="org.gnome.Shell", path="/org/gnome/Shell", interface="org.gnome.Shell")
        return answer.stdout.strip()

    def wait_for_server(self):
        until(lambda: "true" in self.shell("!Main.layoutManager._startingUp").split(",")[-1], self.patience, "GNOME Shell does not start")
        self.shell("Main.overview.hide(); 1")
        # It has things to say of itself, to root and without a display manager.
        for _ in range(15):
            self.shell("Main.messageTray.getSources().filter(s => s.title != 'Proving ground').forEach(s => s.destroy()); 1")
            time.sleep(0.2)
        self.bus.ask("StartServiceByName", "org.gnome.Shell.Notifications", "0")
        self.shell("global.vp = imports.gi.Clutter.get_default_backend().get_default_seat()"
                   ".create_virtual_device(imports.gi.Clutter.InputDeviceType.POINTER_DEVICE); 1")
        owner = self.bus.ask("GetNameOwner", "org.gnome.Shell")
        if owner.returncode == 0:
            self.bus.servers.add(owner.stdout.split("'")[1])
        super().wait_for_server()

    def kill_server(self):
        self.processes.kill(self.server)
        self.server = None
        # The helper that owns the name leaves with the shell, or does not.
        for pid in self.processes_of_homes():
            try:
                command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
                if b"org.gnome.Shell.Notifications" in command:
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        until(lambda: self.bus.owner() is None, 10, "the server's name stays on the bus")
        self.bus.note_server_gone()

    def is_shown(self):
        answer = self.shell("Main.messageTray.getSources().reduce((n, s) => n + s.notifications.length, 0)")
        return answer.startswith("(true") and "'0'" not in answer

    # What a banner is made of: for each thing to press its left, top, width and height on the screen.
    PLACES = """(() => {
        const banner = Main.messageTray._banner;
        if (!banner) return '{}';
        const place = actor => [...actor.get_transformed_position(), ...actor.get_transformed_size()];
        const found = {expanded: banner.expanded, body: place(banner), close: place(banner._closeButton)};
        if (banner._buttonBox) banner._buttonBox.get_children().forEach(button => found[button.label.toLowerCase()] = place(button));
        return JSON.stringify(found);
    })()"""
    # What a press does, done by the shell itself.
    ACTIVATIONS = {"body": "one.activate()", "close": "one.destroy(2)"}

    def places(self):
        """Empty: no banner is up."""
        answer = re.search(r"\{.*\}", self.shell(" ".join(self.PLACES.split())).replace("\\", ""))
        return json.loads(answer.group()) if answer else {}

    def at(self, spot, box=None):
        """Where it is now: a banner moves when it comes, and its buttons come out when the pointer is over it. None: no banner is up."""
        last = None
        for _ in range(25):
            now = self.places()
            if not now:
                return None
            x, y, width, height = now["body"]
            if spot in now and now == last and (now["expanded"] or spot == "body"):
                x, y, width, height = now[spot]
                return round(x + width / 2), round(y + (height / 2 if spot != "body" else 30))
            if spot != "body":
                self.move(round(x + 120), round(y + 30 + (last is None)))
            last = now
            time.sleep(0.2)
        raise No(f"there is nothing to press on the banner but {' '.join(last)}")

    def activate(self, spot):
        """Where its banner has gone to the list, which has no buttons: as if it were there still."""
        act = self.ACTIVATIONS.get(spot, f"one.actions.find(action => action.label.toLowerCase() == '{spot}').callback(); one.destroy()")
        print(f"  no banner is up: {spot} is pressed by the shell itself", flush=True)
        answer = self.shell(f"const one = Main.messageTray.getSources().flatMap(source => source.notifications)[0]; {act}; 1")
        if not answer.startswith("(true"):
            raise No(f"nothing is there to be pressed: {answer[:100]}")

    def press_once(self, spot, times=1):
        place = self.at(spot)
        if place is None:
            return self.activate(spot)
        for _ in range(times):
            self.click(*place)
        self.move(*self.rest)

    def stir(self):
        # A banner waits for somebody, and the next one waits for it.
        for _ in range(2):
            self.move(self.rest[0] + 10, self.rest[1])
            self.move(*self.rest)
            time.sleep(self.expires + 1)

    def press(self, key):
        self.press_once(key)

    def press_twice(self, key):
        self.press_once(key, times=2)

    def press_body(self):
        self.press_once("body")

    def close(self):
        self.press_once("close")

    def picture(self):
        path = self.folder / "picture.png"
        self.bus.ask("Screenshot", "false", "false", str(path), destination="org.gnome.Shell.Screenshot",
                     path="/org/gnome/Shell/Screenshot", interface="org.gnome.Shell.Screenshot")
        return Picture.of_file(["convert", str(path), "-depth", "8", "-alpha", "off", "ppm:-"])

    def move(self, x, y):
        self.shell(f"global.vp.notify_absolute_motion(imports.gi.GLib.get_monotonic_time(), {x}, {y}); 1")
        time.sleep(0.25)

    def click(self, x, y, button=1):
        self.move(x + 2, y)
        self.move(x, y)
        for state in (1, 0):
            self.shell(f"global.vp.notify_button(imports.gi.GLib.get_monotonic_time(), {button}, {state}); 1")
            time.sleep(0.1)
        time.sleep(0.2)


class Plasma(X11Desk):
    name, server_name = "plasma", "Plasma"
    services = ("org.kde.*",)
    packages = ("plasma-workspace", "plasma-desktop", "kwin-wayland", "breeze-icon-theme", "openbox", *X11)
    size = (1280, 800)
    patience, drawing = 60, 1.2
    spots = {"body": (60, 60), "accept": (-90, -20), "later": (-31, -20), "close": (-15, 15)}
    expires = 5
    same_words = "the same words again within a second are refused"

    @property
    def region(self):
        # Without the panel with the clock, and what else Plasma opens.
        return (880, 0, self.size[0], self.size[1] - 50)

    def configure(self):
        # It opens where somebody types and nothing has the keyboard, and covers the screen from then on.
        (self.folder / "services/org.kde.krunner.service").unlink(missing_ok=True)
        self.bus.ask("ReloadConfig")

    def start_display(self):
        super().start_display()
        self.environment |= {
            "XDG_CURRENT_DESKTOP": "KDE", "KDE_FULL_SESSION": "true", "KDE_SESSION_VERSION": "5", "QT_QPA_PLATFORM": "xcb",
            "LIBGL_ALWAYS_SOFTWARE": "1", "QT_QUICK_BACKEND": "software", "QSG_RENDER_LOOP": "basic"}
        self.processes.start("openbox", ["openbox"], self.environment)

    def command(self):
        return ["plasmashell", "--no-respawn"]

    def type_reply(self, text):
        # The button is the last one, and gives way to a field over the whole width.
        self.click(*self.at("later"))
        time.sleep(0.8)
        left, top, right, bottom = self.still_box()
        self.click((left + right) // 2 - 40, bottom - 22)
        time.sleep(0.4)
        self.run("xdotool", "type", "--delay", "60", text)
        self.run("xdotool", "key", "Return")
        time.sleep(0.3)
        self.move(*self.rest)


class NoServer(Desk):
    """A bus on which nobody shows notifications."""

    name = "none"
    packages = COMMON
    has_screen = False

    def start_display(self):
        pass

    def start_server(self):
        pass

    def is_alive(self):
        return True

    def kill_server(self):
        pass

    def answers(self):
        return True


DESKS = {desk.name: desk for desk in
         (Dunst, Xfce, Mate, NotificationDaemon, Lxqt, NotifyOsd, Mako, Swaync, Gnome, Plasma, NoServer)}
