#!/usr/bin/env python3
"""Makes, builds, runs and wakes the apps of README and tutorial, from what stands there and nothing else.

    readme.py [--ship]

--ship: also what the tutorial says about packaging, which builds everything once more, for release.
"""

import http.server
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
README = os.path.join(ROOT, "README.md")
TUTORIAL = os.path.join(ROOT, "Sources/API/BackgroundTasks/BackgroundTasks.docc/FromIOS.md")
EPISODE = os.urandom(3_000_000)


class Server(http.server.BaseHTTPRequestHandler):
    """The tide, and an episode of a podcast."""

    asked: list[str] = []

    def do_GET(self):
        Server.asked.append(self.path)
        body = EPISODE if self.path.endswith(".mp3") else b"high\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def files(text: str) -> dict[str, str]:
    """Every block whose paragraph begins with the path of a file, by that path."""
    found, paragraph, block, language, ended = {}, [], None, "", True
    for line in text.splitlines():
        if block is not None:
            if line == "```":
                name = re.match(r"`([\w./-]+\.\w+)`", paragraph[0]) if paragraph else None
                if name and language in ("swift", "xml"):
                    found[name[1]] = "".join(each + "\n" for each in block)
                paragraph, block = [], None
            else:
                block.append(line)
        elif line.startswith("```"):
            language, block = line[3:], []
        elif line:
            paragraph = paragraph + [line] if not ended else [line]
        ended = not line
    return found


def steps(text: str, before: str = "In a terminal, in that folder:") -> list[tuple[str, list[str]]]:
    """The lines of every block of shell behind such a paragraph, and what a reader has read by then."""
    blocks = re.finditer(rf"^{re.escape(before)}\n\n```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text[:block.start()], [line.split("  #")[0].strip() for line in block[1].splitlines()]) for block in blocks]


class Reader:
    """Does what a page says, in an empty folder beside the checkout, in a home of its own."""

    def __init__(self, place: str, port: int):
        self.app = os.path.join(place, "app")
        self.home = os.path.join(place, "home")
        names = ("CONFIG_HOME", "STATE_HOME", "DATA_HOME", "RUNTIME_DIR")
        own = {f"XDG_{name}": os.path.join(place, name) for name in names}
        os.makedirs(own["XDG_RUNTIME_DIR"], 0o700)
        os.makedirs(self.home)
        server = f"http://127.0.0.1:{port}"
        self.environment = {
            **os.environ, **own, "HOME": self.home, "TIDE_URL": f"{server}/tide.txt", "PODCAST_URL": f"{server}/1.mp3",
            "PODCAST_FOLDER": os.path.join(self.home, "Podcasts"),
        }
        self.environment.pop("DBUS_SESSION_BUS_ADDRESS", None)

    def make(self, text: str, expected: list[str]) -> None:
        found = files(text)
        if sorted(found) != sorted(expected):
            sys.exit(f"readme.py: the page shows {sorted(found)}")
        # As far as the first thing to type needs them.
        found = files(steps(text)[0][0])
        # What was built of the same checkout for another page need not be built again.
        for name in os.listdir(self.app) if os.path.isdir(self.app) else []:
            if name != ".build":
                path = os.path.join(self.app, name)
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
        for name, body in found.items():
            path = os.path.join(self.app, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(body)

    def type(self, lines: list[str]) -> str:
        """What the last one says. All of them have to succeed."""
        said = ""
        for line in lines:
            print(f"$ {line}", flush=True)
            done = self.run(line)
            said = done.stdout
            if done.returncode != 0:
                sys.exit(f"readme.py: {line}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return said

    def run(self, line: str) -> subprocess.CompletedProcess:
        # As if typed: who looks for a process by its arguments does not find the shell.
        return subprocess.run(["sh"], input=line, cwd=self.app, env=self.environment, capture_output=True, text=True)

    def quietly(self, line: str) -> str:
        return self.run(line).stdout


def readme(reader: Reader) -> None:
    text = open(README).read()
    reader.make(text, ["Package.swift", "Sources/tide/Tide.swift", "Sources/tide/tide-Info.plist"])
    said = reader.type(steps(text)[0][1])
    reader.quietly(".build/debug/tide background quit")
    if "TideMorning" not in said or "completed" not in said or Server.asked != ["/tide.txt"]:
        sys.exit(f"readme.py: it was not woken, or did not fetch:\n{said}")
    print("The README's app was made, built, run and woken.")


def code_lines(text: str) -> int:
    """Lines that are neither empty nor a comment."""
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("//"))


def tutorial(reader: Reader, ships: bool) -> None:
    text = open(TUTORIAL).read()
    reader.make(text, [
        "Package.swift", "Sources/podcast/podcast-Info.plist", "Sources/Feed/Feed.swift", "Sources/podcast/main.swift",
        "Tests/FeedTests/FeedTests.swift",
    ])
    size = sum(code_lines(body) for name, body in files(text).items() if name.startswith("Sources") and name.endswith("swift"))
    if size > 60:
        sys.exit(f"readme.py: the app of the tutorial has {size} lines")
    (_, test), (_, run), (_, kill) = steps(text)
    reader.type(test)
    print("The tutorial's test passed.")
    episode = os.path.join(reader.environment["PODCAST_FOLDER"], "1.mp3")

    def wait_for_episode():
        reader.quietly("for i in $(seq 300); do [ -s '%s' ] && break; sleep 0.1; done" % episode)
        if not os.path.exists(episode) or open(episode, "rb").read() != EPISODE:
            sys.exit(f"readme.py: the episode is not there\n{reader.quietly('.build/debug/podcast background history')}")
        os.remove(episode)

    said = reader.type(run)
    if "org.example.podcast.refresh" not in said or "completed" not in said:
        sys.exit(f"readme.py: it was not woken:\n{said}")
    wait_for_episode()
    reader.type(kill)
    wait_for_episode()
    reader.quietly(".build/debug/podcast background quit")
    print("The tutorial's app was made, built, run, woken and killed.")
    if ships:
        reader.type(steps(text, "The Swift runtime goes into the program, and the agent into `libexec` beside it:")[0][1])
        said = reader.type(["~/.local/bin/podcast", "~/.local/bin/podcast background why"])
        reader.quietly("~/.local/bin/podcast background uninstall; ~/.local/bin/podcast background quit")
        if "org.example.podcast.refresh" not in said:
            sys.exit(f"readme.py: what was installed does not work:\n{said}")
        print("The tutorial's app was packaged and installed.")


def main() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="readme-") as place:
        os.symlink(ROOT, os.path.join(place, "stormy"))
        reader = Reader(place, server.server_address[1])
        readme(reader)
        tutorial(reader, "--ship" in sys.argv[1:])


main()
