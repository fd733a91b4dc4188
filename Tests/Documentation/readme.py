#!/usr/bin/env python3
"""Makes, builds, runs and wakes the app of the README, from what stands there and nothing else.

    readme.py README.md
"""

import http.server
import os
import re
import subprocess
import sys
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Tide(http.server.BaseHTTPRequestHandler):
    asked = 0

    def do_GET(self):
        Tide.asked += 1
        body = b"high\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def files(text: str) -> dict[str, str]:
    """Every block whose paragraph begins with the path of a file, by that path."""
    paragraphs = re.split(r"\n\n(?=`|In |```|[A-Z])", text)
    found = {}
    for before, block in zip(paragraphs, paragraphs[1:]):
        name = re.match(r"`([\w./-]+\.\w+)`", before)
        body = re.match(r"```(?:swift|xml)\n(.*?)^```", block, re.MULTILINE | re.DOTALL)
        if name and body:
            found[name[1]] = body[1]
    return found


def commands(text: str) -> list[str]:
    block = re.search(r"^In a terminal, in that folder:\n\n```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]
    return [line.split("  #")[0].strip() for line in block.splitlines()]


def main() -> None:
    text = open(sys.argv[1]).read()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tide)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="readme-") as place:
        os.symlink(ROOT, os.path.join(place, "stormy"))
        app = os.path.join(place, "tide")
        found = files(text)
        if sorted(found) != ["Package.swift", "Sources/tide/Tide.swift", "Sources/tide/tide-Info.plist"]:
            sys.exit(f"readme.py: the README shows {sorted(found)}")
        for name, body in found.items():
            path = os.path.join(app, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(body)
        own = {f"XDG_{name}": os.path.join(place, name) for name in ("CONFIG_HOME", "STATE_HOME", "DATA_HOME", "RUNTIME_DIR")}
        os.makedirs(own["XDG_RUNTIME_DIR"], 0o700)
        environment = {**os.environ, **own, "TIDE_URL": f"http://127.0.0.1:{server.server_address[1]}/tide.txt"}
        environment.pop("DBUS_SESSION_BUS_ADDRESS", None)
        said = ""
        for command in commands(text):
            print(f"$ {command}", flush=True)
            done = subprocess.run(command, shell=True, cwd=app, env=environment, capture_output=True, text=True)
            said = done.stdout
            if done.returncode != 0:
                sys.exit(f"readme.py: {command}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        subprocess.run(".build/debug/tide background quit", shell=True, cwd=app, env=environment, capture_output=True)
        if "TideMorning" not in said or "completed" not in said or Tide.asked != 1:
            sys.exit(f"readme.py: it was not woken, or did not fetch:\n{said}")
    print("The README's app was made, built, run and woken.")


main()
