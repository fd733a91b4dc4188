#!/usr/bin/env python3
"""Installs the package in a clean Debian 12 and a clean Debian 13, and runs the commands of a typical user.

    clean_root.py PACKAGE.deb FOLDER

FOLDER gets a minimal Debian of each version (debootstrap), which the next call uses again. The script works in a copy. The steps are install, demo, a daily
check with a storm, an upgrade with a waiting photo and a running agent, remove, and purge. No files except the user's data may remain.
The script must run as root.
"""

import contextlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

VERSIONS = {"12": "bookworm", "13": "trixie"}
PERSON = "kim"


def check(claim: str, holds: bool, detail: str = "") -> None:
    print(f"  {'✓' if holds else '✗'} {claim}" + (f"  ({detail})" if detail else ""), flush=True)
    if not holds:
        sys.exit(1)


class Root:
    def __init__(self, path: str) -> None:
        self.path = path

    def run(self, *command: str, person: bool = False, **arguments) -> subprocess.CompletedProcess:
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", "TZ": "UTC"}
        words = ["chroot", self.path]
        if person:
            words = ["chroot", "--userspec", f"{PERSON}:{PERSON}", self.path]
            environment.update(HOME=f"/home/{PERSON}", XDG_RUNTIME_DIR=f"/home/{PERSON}/run")
        return subprocess.run(words + list(command), env=environment, capture_output=True, text=True, **arguments)

    def stormy(self, *arguments: str) -> str:
        done = self.run("stormy", *arguments, person=True)
        if done.returncode != 0:
            check(f"stormy {' '.join(arguments)}", False, done.stdout + done.stderr)
        return done.stdout

    def status(self) -> dict:
        return json.loads(self.stormy("status", "--json"))

    def wait(self, claim: str, question) -> None:
        deadline = time.monotonic() + 90
        while not question():
            if time.monotonic() > deadline:
                log = os.path.join(self.path, f"home/{PERSON}/.local/state/stormy/agent.log")
                check(claim, False, open(log).read() if os.path.exists(log) else "no log")
            time.sleep(0.3)
        check(claim, True)

    def files(self) -> set[str]:
        """Returns the paths of all files, without the folders that every package installation changes."""
        ignored = ("./proc", "./dev", "./sys", "./tmp", "./run", f"./home/{PERSON}", "./var/lib/apt", "./var/cache", "./var/log", "./var/lib/dpkg")
        found = subprocess.run(["find", ".", "-xdev", "!", "-type", "d"], cwd=self.path, capture_output=True, text=True).stdout
        return {line for line in found.splitlines() if not line.startswith(ignored)}


@contextlib.contextmanager
def weather_service(folder: str):
    """A server that responds to every weather request with a storm. Photos are refused until `accepts` is true."""
    hours = [time.strftime("%Y-%m-%dT%H:00", time.gmtime(time.time() + 3600 * (hour - 1))) for hour in range(48)]
    hourly = {
        "time": hours, "weather_code": [95] * 48, "wind_gusts_10m": [110.0] * 48, "precipitation": [12.0] * 48,
        "temperature_2m": [20.0] * 48,
    }
    body = json.dumps({"latitude": 1, "longitude": 1, "utc_offset_seconds": 0, "timezone": "UTC", "hourly": hourly}).encode()

    class Handler(http.server.BaseHTTPRequestHandler):
        accepts = False

        def do_GET(self):
            self.answer(200, body)

        def do_HEAD(self):
            path = os.path.join(folder, os.path.basename(self.path))
            if not os.path.isfile(path):
                return self.answer(404, b"")
            with open(path, "rb") as file:
                self.answer(200, file.read())

        def do_PUT(self):
            received = self.rfile.read(int(self.headers["Content-Length"]))
            if not Handler.accepts:
                return self.answer(503, b"")
            with open(os.path.join(folder, os.path.basename(self.path)), "wb") as file:
                file.write(received)
            self.answer(201, b"")

        def answer(self, status, content):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1], Handler
    server.shutdown()


def with_version(package: str, version: str, folder: str) -> str:
    """Returns the path of a copy of the package with another version."""
    stage = os.path.join(folder, "repack")
    subprocess.run(["dpkg-deb", "-R", package, stage], check=True)
    control = os.path.join(stage, "DEBIAN/control")
    lines = [f"Version: {version}\n" if line.startswith("Version:") else line for line in open(control)]
    with open(control, "w") as file:
        file.writelines(lines)
    out = os.path.join(folder, f"stormy-{version}.deb")
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", stage, out], check=True, stdout=subprocess.DEVNULL)
    return out


def install(root: Root, package: str) -> subprocess.CompletedProcess:
    name = os.path.basename(package)
    shutil.copy(package, os.path.join(root.path, "tmp", name))
    return root.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", f"/tmp/{name}")


def problem(done: subprocess.CompletedProcess) -> str:
    return done.stderr.strip()[-300:] if done.returncode != 0 else ""


def use(root: Root, package: str, folder: str) -> None:
    for name in ("resolv.conf", "hosts"):
        shutil.copy(os.path.join("/etc", name), os.path.join(root.path, "etc", name))
    root.run("useradd", "-m", PERSON)
    root.run("mkdir", "-p", "-m", "700", f"/home/{PERSON}/run")
    root.run("chown", f"{PERSON}:", f"/home/{PERSON}/run")
    root.run("apt-get", "update", "-qq")
    before = with_version(package, "0.0.1", folder)
    # The dependencies are installed before the first list of files is made, because they stay installed when the package is
    # removed.
    depends = subprocess.check_output(["dpkg-deb", "-f", before, "Depends"], text=True)
    root.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *[word.split()[0] for word in depends.split(", ")])
    clean = root.files()

    done = install(root, before)
    check("the package installs without a toolchain", done.returncode == 0, problem(done))
    demo = root.run("stormy", "demo", person=True)
    check("the demo passes", demo.returncode == 0 and " passed in " in demo.stdout, demo.stdout.strip().splitlines()[-2])
    version = subprocess.check_output(["dpkg-deb", "-f", package, "Version"], text=True)
    check("the program prints the version of its package", root.run("stormy", "--version").stdout == version, version)
    pages = root.run("sh", "-c", "ls /usr/share/man/man1/stormy*.1.gz | wc -l").stdout.strip()
    check("the manual pages and the menu entry are installed", int(pages) > 15 and root.run("test", "-e", "/usr/share/applications/stormy.desktop").returncode == 0)

    with weather_service(folder) as (port, service):
        configuration = os.path.join(root.path, f"home/{PERSON}/.config/stormy")
        os.makedirs(configuration)
        with open(os.path.join(configuration, "config.toml"), "w") as file:
            file.write(
                f'[weather]\nbase_url = "http://127.0.0.1:{port}"\n[upload]\ndefault = "home"\n'
                f'[upload.destinations.home]\nkind = "put"\nurl = "http://127.0.0.1:{port}/"\n')
        root.run("chown", "-R", f"{PERSON}:", f"/home/{PERSON}")
        root.stormy("place", "add", "Here", "1,1", "--no-sync")
        at = time.gmtime(time.time() + 5)
        root.stormy("schedule", "--exact", "--at", time.strftime("%H:%M:%S", at))
        root.wait("the daily check runs and finds a storm", lambda: len(root.status()["storms"]) == 1)

        photo = os.path.join(root.path, f"home/{PERSON}/storm.png")
        with open(photo, "wb") as file:
            file.write(bytes.fromhex(
                "89504e470d0a1a0a0000000d4948445200000001000000010806000000" "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"))
        os.chmod(photo, 0o644)
        root.stormy("upload", f"/home/{PERSON}/storm.png")
        root.wait("a photo waits for the server", lambda: root.status()["transfers"]["waiting"] == 1)
        done = install(root, package)
        check("the next version is installed while an agent runs", done.returncode == 0, problem(done))
        service.accepts = True
        root.stormy("transfers", "retry", "all")
        root.wait("the photo is uploaded", lambda: os.path.exists(os.path.join(folder, "storm.png")))
        log = os.path.join(root.path, f"home/{PERSON}/.local/state/stormy/agent.log")
        check("the old agent exited for the new program", "another program replaced the agent's program" in open(log).read())
        check("the daily check is still on", root.status()["schedule"]["enabled"] is True)
        root.stormy("quit")
        root.stormy("schedule")
        root.wait("a new agent runs", lambda: root.status()["agent"]["running"])

    check("the package is removed", root.run("apt-get", "remove", "-y", "-qq", "stormy").returncode == 0)
    check("the agent ends with the package", root.run("sh", "-c", "for i in $(seq 50); do pgrep -f [b]ackground-agent || exit 0; sleep 0.1; done; exit 1").returncode == 0)
    check("the package is purged", root.run("dpkg", "--purge", "stormy").returncode == 0)
    left = {path for path in root.files() - clean if not path.startswith(("./etc/ld.so.cache", "./var/lib/systemd", "./usr/share/mime"))}
    check("only files of the user are left", not left, ", ".join(sorted(left)[:5]))
    check("the files of the user are kept", os.path.exists(os.path.join(root.path, f"home/{PERSON}/.local/share/stormy/stormy.sqlite")))


def try_package(package: str, base: str, version: str) -> None:
    if not os.path.exists(os.path.join(base, "etc/debian_version")):
        print(f"Making a clean Debian {version} (a minute)", flush=True)
        # The packages are downloaded from the first package source of this machine.
        mirror = subprocess.check_output(["apt-get", "indextargets", "--format", "$(SITE)"], text=True).split()[0]
        subprocess.run(
            ["debootstrap", "--variant=minbase", "--include=ca-certificates", VERSIONS[version], base, mirror], check=True,
            stdout=subprocess.DEVNULL)
    print(f"Debian {version}", flush=True)
    with tempfile.TemporaryDirectory(prefix="stormy-root-") as folder:
        root = Root(os.path.join(folder, "root"))
        subprocess.run(["cp", "-a", "--reflink=auto", base, root.path], check=True)
        mounts = [["--bind", "/dev", root.path + "/dev"], ["-t", "proc", "proc", root.path + "/proc"]]
        try:
            for mount in mounts:
                subprocess.run(["mount", *mount], check=True)
            use(root, package, folder)
        finally:
            root.run("pkill", "-u", PERSON)
            for mount in mounts:
                subprocess.run(["umount", "-l", mount[-1]], check=False)


def main() -> None:
    package, folder = (os.path.abspath(path) for path in sys.argv[1:])
    for version in VERSIONS:
        try_package(package, os.path.join(folder, version), version)


main()
