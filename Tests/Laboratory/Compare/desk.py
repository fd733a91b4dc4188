"""The surroundings of a trial: services of the system, a screen with a notification server, and servers of files."""
import http.server
import pathlib
import subprocess
import threading

from ground import No, until
from support import free_port, nginx

POWER = ("upower", "org.freedesktop.UPower", "/org/freedesktop/UPower")
NETWORK = ("networkmanager", "org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager")
DUNST = """[global]
    dmenu = {menu}
    notification_limit = 20
[urgency_low]
    timeout = 0
[urgency_normal]
    timeout = 0
[urgency_critical]
    timeout = 0
"""


class System:
    """UPower and NetworkManager on a private system bus, simulated by python3-dbusmock."""

    # Each condition has a service, a property, and a query for a shell. The property has one value if the condition is met, and
    # another value if the condition is not met.
    CONDITIONS = {
        "power": (POWER, "OnBattery", "false", "true", "<false>"),
        "network": (NETWORK, "Connectivity", "uint32 4", "uint32 1", "uint32 4"),
        "metered": (NETWORK, "Metered", "uint32 4", "uint32 1", "uint32 4"),
    }

    def __init__(self, ground):
        self.ground = ground
        ground.start_bus("system")
        for template, name, _ in (POWER, NETWORK):
            # Debian's Python is used, because another Python in the path does not have the needed modules.
            ground.start(["/usr/bin/python3", "-m", "dbusmock", "--template", template])
        for _, name, _ in (POWER, NETWORK):
            ground.run("gdbus", "wait", "--system", "--timeout", "20", name, check=True)
        first = "'/org/freedesktop/NetworkManager/ActiveConnection/1'"
        for name, value in (("Metered", "uint32 4"), ("PrimaryConnectionType", "'802-3-ethernet'"), ("PrimaryConnection", first)):
            self.call(NETWORK, "AddProperty", NETWORK[1], name, f"<{value}>")
        self.set("network", True)

    def call(self, service, method, *words):
        self.ground.run("gdbus", "call", "--system", "-d", service[1], "-o", service[2], "-m", f"org.freedesktop.DBus.Mock.{method}",
                        *words, check=True)

    def set(self, condition, is_met):
        service, name, met, unmet, _ = self.CONDITIONS[condition]
        self.call(service, "UpdateProperties", service[1], f"{{'{name}': <{met if is_met else unmet}>}}")
        if condition == "network":
            self.call(service, "UpdateProperties", service[1], f"{{'State': <uint32 {70 if is_met else 40}>}}")

    def question(self, condition):
        """Returns a script that exits with 0 if the condition is met."""
        service, name, met, _, _ = self.CONDITIONS[condition]
        path = self.ground.folder / f"is-{condition}"
        path.write_text(f"#!/bin/sh\ngdbus call --system -d {service[1]} -o {service[2]} -m org.freedesktop.DBus.Properties.Get "
                        f"{service[1]} {name} | grep -q '<{met}>'\n")
        path.chmod(0o755)
        return path


class Screen:
    """A virtual display with dunst."""

    def __init__(self, ground):
        self.ground = ground
        ground.start_bus()
        server = subprocess.Popen(ground.inside(["Xvfb", "-displayfd", "1", "-screen", "0", "800x600x24"]),
                                  env=ground.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=ground.output, text=True)
        ground.processes.append(server)
        ground.environment["DISPLAY"] = f":{server.stdout.readline().strip()}"
        menu = ground.folder / "menu"
        menu.write_text(f"#!/bin/sh\ngrep -F \"$(cat '{ground.folder}/choice')\" | head -n 1\n")
        menu.chmod(0o755)
        (ground.folder / "dunstrc").write_text(DUNST.format(menu=menu))
        self.start()

    def start(self):
        self.server = self.ground.start(["dunst", "-config", self.ground.folder / "dunstrc"])
        self.ground.run("gdbus", "wait", "--session", "--timeout", "20", "org.freedesktop.Notifications", check=True)

    def restart(self):
        self.server.kill()
        self.server.wait()
        self.start()

    def shown(self):
        said = self.ground.run("dunstctl", "count", "displayed").stdout.strip()
        return int(said) if said.isdigit() else 0

    def wait_shown(self, count=1, seconds=10, complaint=None):
        until(lambda: self.shown() == count, seconds, complaint or f"{self.shown()} stand there instead of {count}")

    def press(self, label):
        (self.ground.folder / "choice").write_text(label)
        self.ground.run("dunstctl", "context")


class Files:
    """An nginx that serves a folder with a limit of bytes per second, and logs the sent bytes."""

    def __init__(self, ground, rate=None):
        self.folder = pathlib.Path(ground.folder, "nginx")
        self.files = self.folder / "www"
        self.files.mkdir(parents=True)
        self.port = free_port()
        self.log = self.folder / "access.log"
        limit = f"limit_rate {rate}; " if rate else ""
        # nginx counts the bytes that it passed to the system. Without a limit, this count is megabytes higher than the bytes on
        # the network.
        server = f"root {self.files}; dav_methods PUT DELETE MKCOL COPY MOVE; client_max_body_size 0; {limit}"
        words = nginx(self.folder, self.port, server)
        configuration = self.folder / "server.conf"
        text = configuration.read_text().replace("access_log off;", f"log_format own '$request_method $status $body_bytes_sent'; access_log {self.log} own;")
        configuration.write_text(text.replace(f"listen 127.0.0.1:{self.port};", f"listen 127.0.0.1:{self.port} sndbuf=64k;"))
        self.process = ground.start(words)
        self.url = f"http://127.0.0.1:{self.port}"
        until(lambda: ground.run("curl", "-s", "-o", "/dev/null", self.url).returncode == 0, 10, "nginx does not start")

    def requests(self, method):
        """Returns the status and the bytes of the response for each completed request."""
        lines = [line.split() for line in self.log.read_text().splitlines()] if self.log.exists() else []
        return [(int(line[1]), int(line[2])) for line in lines if line[0] == method]


class Refusing:
    """Responds with 503 several times, and then with a file. The server is outside the trial, so it survives a power cut."""

    def __init__(self, times, body=b"the file\n"):
        self.left, self.times = times, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                import time
                outer.times.append(time.time())
                is_refused, outer.left = outer.left > 0, outer.left - 1
                answer = b"" if is_refused else body
                self.send_response(503 if is_refused else 200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def do_HEAD(self):
                self.do_GET()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/file"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()


__all__ = ["Files", "No", "Refusing", "Screen", "System", "until"]
