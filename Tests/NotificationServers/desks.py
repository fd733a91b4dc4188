"""Desktops with one real notification server each. A desk has a private bus, a virtual display, a server and a separate home.

A desk starts, kills and freezes its server. A desk also acts as the user: it presses a button or the notification, closes the notification,
and types. The positions of buttons are measured from the edges of the area that differs from the empty desktop. All processes of a desk end
with the desk, even if the test itself is killed.
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
# The packages of every desk: the bus, the recorder and the picture tools.
COMMON = ("dbus", "libglib2.0-bin", "python3-dbus", "python3-gi", "imagemagick")
X11 = (*COMMON, "xvfb", "xdotool")
SWAY = (*COMMON, "sway", "grim")


class Processes:
    """The started processes in order. Each process ends when this process ends, for any reason."""

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
    """One desktop. A subclass defines the differences."""

    name = ""
    # The server's name in its response to GetServerInformation.
    server_name = ""
    packages = ()
    # Patterns for the names of files in /usr/share/dbus-1/services.
    services = ()
    size = (1000, 700)
    # The position to which the pointer is moved after a click. A notification stays on the screen while the pointer is over it,
    # so the pointer is moved away.
    rest = (20, 400)
    # The positions of buttons, measured from the left and top edges of the notification. Negative positions are measured from the
    # right and bottom edges.
    spots = {}
    # The maximum start time in seconds.
    patience = 20
    # The seconds between a call of Notify and the time when the notification is drawn.
    drawing = 0.6
    # The seconds after which the server removes a notification from the screen, or None.
    expires = None
    # Whether the desk has a screen.
    has_screen = True
    # What the server does with two notifications that have the same text and arrive within a second. None if the server shows
    # both.
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
        """Returns agents and processes that the bus has started. They have separate sessions, so they are found by their environment."""
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

    # Methods that a subclass defines.

    def start_display(self):
        raise NotImplementedError

    def configure(self):
        """Writes the server's settings."""

    def command(self):
        """Returns the command of the server."""
        raise NotImplementedError

    def picture(self):
        raise NotImplementedError

    def click(self, x, y, button=1):
        raise NotImplementedError

    def move(self, x, y):
        raise NotImplementedError

    # Methods for the server.

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
        """Waits until the empty desktop does not change, and keeps a picture of it."""
        if not self.has_screen:
            return
        self.move(*self.rest)
        # Servers that start later show the existing notifications at once, so the empty desktop is captured only once.
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
        """Ends the server and the bus, as at a logout. Then starts both again at the same address."""
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
        """Returns whether the server responds within 2 s."""
        return self.bus.ask("GetServerInformation", destination=NAME, path="/org/freedesktop/Notifications", interface=NAME,
                            seconds=2).returncode == 0

    def is_alive(self):
        return self.server is not None and self.server.poll() is None and self.bus.owner() is not None

    # Methods for the screen.

    @property
    def region(self):
        """The region in which notifications are searched: left, top, right, bottom."""
        return (0, 0, *self.size)

    def box(self):
        """Returns the box of the shown notifications, or None if nothing is shown."""
        return self.picture().difference(self.empty, self.region) if self.has_screen else None

    def still_box(self):
        """Returns the box after half a second without a change, because a busy machine draws a notification in parts, buttons last."""
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
        """Returns whether a notification is on the screen or in the desktop's list of notifications."""
        return self.box() is not None

    def shows_picture(self):
        """Returns whether the magenta picture is on the screen."""
        box = self.still_box()
        return box is not None and self.picture().count_magenta(box) > 60

    def save(self, path):
        if self.has_screen:
            self.picture().save(path)

    # Methods for the user's actions.

    def at(self, spot, box=None):
        if spot not in self.spots:
            raise No("the notification cannot be pressed")
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
        """Presses a button twice without a pause."""
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
        """Moves the pointer if the desktop needs user activity before it takes a notification off the screen."""


class X11Desk(Desk):
    """A desk on Xvfb without a window manager."""

    depth = 24

    def start_display(self):
        reading, writing = os.pipe()
        self.processes.start(
            "xvfb", ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{self.size[0]}x{self.size[1]}x{self.depth}", "-nolisten", "tcp"],
            self.environment, pass_fds=[writing])
        os.close(writing)
        with os.fdopen(reading) as pipe:
            # The complete line is read. If Xvfb cannot write the line, Xvfb ends.
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
    """A test double of dmenu. It chooses the first line that matches the text in a file."""

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
    # The right mouse button opens a menu with the buttons.
    spots = {"body": (40, 14), "accept": (40, 14), "later": (40, 14), "close": (40, 14), "close button": 1}

    def configure(self):
        self.menu = Menu(self.folder)
        settings = {"dmenu = .*": f"dmenu = {self.menu.program}", "mouse_right_click = .*": "mouse_right_click = context",
                    "timeout = 10": f"timeout = {self.expires}"}
        # The configuration is Debian's configuration with these changes.
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
    same_words = "the server shows several notifications with the same text only once"
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
        # The server draws its bubbles only if a compositor is running.
        self.processes.start("compositor", ["xcompmgr"], self.environment)

    def command(self):
        return [str(LIBRARIES / "notify-osd")]


class SwayDesk(Desk):
    """A desk on Sway with a virtual screen. Sway refuses to run as root, so root runs Sway as the user 65534."""

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
    """A mouse for a Wayland seat without a mouse, by zwlr_virtual_pointer_manager_v1."""

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
        """Moves the pointer to a position. Then presses and releases a mouse button, if one is given."""
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
    # The middle mouse button opens a menu with the buttons.
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
    """GNOME Shell on its own virtual screen, with a private system bus and a mock of logind."""

    name, server_name = "gnome-shell", "gnome-shell"
    packages = ("gnome-shell", "gjs", "python3-dbusmock", *COMMON)
    services = ("org.gnome.Shell.Notifications.service",)
    patience, drawing = 60, 1.2
    spots = {"body": (120, 45), "accept": (-379, -31), "later": (-129, -31), "close": (-31, 25)}
    expires = 4

    @property
    def region(self):
        # The region excludes the top bar, which contains the clock.
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
        # If GNOME Shell runs as root and without a display manager, it shows its own notifications. The script removes these
        # notifications.
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
        # A helper process owns the bus name. The helper does not always end when the shell ends.
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

    # The script returns, for each part of a banner that can be pressed, its left, top, width and height on the screen.
    PLACES = """(() => {
        const banner = Main.messageTray._banner;
        if (!banner) return '{}';
        const place = actor => [...actor.get_transformed_position(), ...actor.get_transformed_size()];
        const found = {expanded: banner.expanded, body: place(banner), close: place(banner._closeButton)};
        if (banner._buttonBox) banner._buttonBox.get_children().forEach(button => found[button.label.toLowerCase()] = place(button));
        return JSON.stringify(found);
    })()"""
    # The scripts with which the shell performs a press.
    ACTIVATIONS = {"body": "one.activate()", "close": "one.destroy(2)"}

    def places(self):
        """Returns the places of the banner's parts, or an empty dictionary without a banner."""
        answer = re.search(r"\{.*\}", self.shell(" ".join(self.PLACES.split())).replace("\\", ""))
        return json.loads(answer.group()) if answer else {}

    def at(self, spot, box=None):
        """Returns a position on the banner, or None without a banner. A banner moves at first, and shows its buttons under the pointer."""
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
        """Performs a press if the banner has moved to the list, because the list shows no buttons."""
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
        # A banner stays on the screen until the user is active. The next banner waits until the first banner has left the screen.
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
    same_words = "the server refuses a second notification with the same text within a second"

    @property
    def region(self):
        # The region excludes the panel with the clock and other windows of Plasma.
        return (880, 0, self.size[0], self.size[1] - 50)

    def configure(self):
        # If keys are typed without a focused window, KRunner opens and covers the screen. KRunner's service file is therefore
        # removed.
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
        # The reply button is the last button. After a click, a text field over the full width replaces the buttons.
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
    """A bus without a notification server."""

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
