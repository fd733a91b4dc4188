#!/usr/bin/env python3
"""Checks README and the Swift guides: types the quick start and compares the output, and builds, runs and launches the apps.

    readme.py [--quick-start | --ship]

--quick-start: check only the quick start of README. --ship: also package the app of the tutorial, which needs a release build.
The quick start uses the programs in the folder STORMY_PROGRAMS (an environment variable), or in .build/debug if the variable is not set.
"""

import datetime
import fcntl
import http.server
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
README = os.path.join(ROOT, "README.md")
FIRST_APP = os.path.join(ROOT, "Sources/API/BackgroundScenes/BackgroundScenes.docc/FirstApp.md")
TUTORIAL = os.path.join(ROOT, "Sources/API/BackgroundTasks/BackgroundTasks.docc/FromIOS.md")
EPISODE = os.urandom(3_000_000)
PROGRAMS = os.environ.get("STORMY_PROGRAMS", os.path.join(ROOT, ".build/debug"))


class Server(http.server.BaseHTTPRequestHandler):
    """A fake server with a tide, a podcast episode, a weather service with a storm from 12:00 to 15:00, and a WebDAV folder."""

    asked: list[str] = []
    photos: dict[str, bytes] = {}
    offset = 0

    def do_GET(self):
        path = self.path.split("?")[0]
        if path.startswith("/photos/"):
            photo = b"" if path == "/photos/" else Server.photos.get(path)
            return self.respond(404 if photo is None else 200, photo or b"")
        if path == "/v1/forecast":
            return self.respond(200, forecast(Server.offset))
        Server.asked.append(path)
        self.respond(200, EPISODE if path.endswith(".mp3") else b"high\n")

    do_HEAD = do_GET

    def do_PUT(self):
        Server.photos[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.respond(201, b"")

    def do_MOVE(self):
        place = "/photos/" + self.headers["Destination"].split("/photos/", 1)[1]
        Server.photos[place] = Server.photos.pop(self.path)
        self.respond(201, b"")

    def respond(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


def forecast(offset: int) -> bytes:
    """Returns an Open-Meteo response for the zone `offset` hours east of UTC, with a thunderstorm from the next 12:00 to 15:00."""
    zone = datetime.timezone(datetime.timedelta(hours=offset))
    first = datetime.datetime.now(zone).replace(minute=0, second=0, microsecond=0) - datetime.timedelta(hours=1)
    hours = [first + datetime.timedelta(hours=hour) for hour in range(48)]
    noon = next(hour for hour in hours[1:] if hour.hour == 12)

    def values(calm: float, storm: float) -> list[float]:
        return [storm if 0 <= (hour - noon).total_seconds() < 3 * 3600 else calm for hour in hours]

    return json.dumps({
        "latitude": -33.87, "longitude": 151.21, "utc_offset_seconds": offset * 3600, "timezone": zone_name(offset),
        "hourly": {
            "time": [hour.strftime("%Y-%m-%dT%H:%M") for hour in hours], "weather_code": values(2, 95),
            "precipitation": values(0.0, 8.2), "wind_gusts_10m": values(24.0, 62.0), "temperature_2m": values(24.0, 19.0),
            "cape": values(100.0, 1800.0),
        },
    }).encode()


def zone_name(offset: int) -> str:
    """Returns the name of the zone. The names of the Etc zones count hours to the west, so the sign is reversed."""
    return f"Etc/GMT{-offset:+d}"


class Desktop:
    """A session bus with a real notification server, on a private screen."""

    def __init__(self, place: str):
        reader, writer = os.pipe()
        self.environment = {"DBUS_SESSION_BUS_ADDRESS": f"unix:path={place}/bus"}
        self.processes = [
            self.start("dbus-daemon", "--session", "--nofork", "--nopidfile", f"--address=unix:path={place}/bus"),
            self.start("Xvfb", "-displayfd", str(writer), "-screen", "0", "800x600x24", pass_fds=[writer]),
        ]
        os.close(writer)
        with os.fdopen(reader) as numbers:
            self.environment["DISPLAY"] = ":" + numbers.readline().strip()
        while not os.path.exists(f"{place}/bus"):
            time.sleep(0.05)
        self.processes.append(self.start("dunst"))
        subprocess.run(
            ["gdbus", "wait", "--session", "--timeout", "20", "org.freedesktop.Notifications"], check=True,
            env={**os.environ, **self.environment})

    def start(self, *command: str, **options) -> subprocess.Popen:
        return subprocess.Popen(
            command, env={**os.environ, **self.environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)

    def press(self) -> None:
        """Presses the notification that is on the screen. Does nothing if the screen shows no notification."""
        environment = {**os.environ, **self.environment}
        count = subprocess.run(["dunstctl", "count", "displayed"], env=environment, capture_output=True, text=True).stdout
        if count.strip() not in ("", "0"):
            subprocess.run(["dunstctl", "action"], env=environment)

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()


def in_terminal(command: str, folder: str, environment: dict[str, str], while_it_runs) -> tuple[int, str]:
    """Types the command in a terminal of 100 columns. Returns the exit code and the text of the terminal without colours."""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    process = subprocess.Popen(
        ["sh", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=end, stderr=end)
    os.close(end)
    shown = b""
    while True:
        is_readable = select.select([terminal], [], [], 0.1)[0]
        try:
            part = os.read(terminal, 65536) if is_readable else b""
        except OSError:
            break
        shown += part
        if not part and process.poll() is not None:
            break
        while_it_runs()
    os.close(terminal)
    return process.wait(), re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", shown.decode()).replace("\r\n", "\n")


def comparable(text: str) -> str:
    """Returns the text without the parts that differ between two runs: durations, sizes, the version of the notification server."""
    text = re.sub(r"\(in \d[^)]*\)", "(in …)", text)
    text = re.sub(r"^ *\d+\.\d+ s ", "0.00 s ", text, flags=re.MULTILINE)
    text = re.sub(r"dunst [\d.]+ \([\d-]+\)", "dunst", text)
    return re.sub(r"\d+ kB", "… kB", text)


def quick_start(place: str, port: int) -> None:
    """Types each command of README's quick start and compares the output. A line "…" matches one or more lines."""
    text = open(README).read()
    configuration = re.search(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]
    session = re.search(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]
    # The local time in this zone is between 08:00 and 09:00.
    Server.offset = (8 - datetime.datetime.now(datetime.timezone.utc).hour + 12) % 24 - 12
    configuration = configuration.replace("https://dav.example.org", f"http://127.0.0.1:{port}")
    home = os.path.join(place, "home")
    os.makedirs(os.path.join(home, ".config/stormy"), 0o700)
    os.makedirs(os.path.join(home, "run"), 0o700)
    with open(os.path.join(home, ".config/stormy/config.toml"), "w") as file:
        file.write(f'[weather]\nbase_url = "http://127.0.0.1:{port}"\n{configuration}')
    photo = os.path.join(home, "storm.jpg")
    subprocess.run(["convert", "-size", "320x200", "gradient:blue-gray", photo], check=True)
    position = ["-GPSLatitude=33.87", "-GPSLatitudeRef=S", "-GPSLongitude=151.21", "-GPSLongitudeRef=E"]
    subprocess.run(["exiftool", "-q", "-overwrite_original", *position, photo], check=True)
    desktop = Desktop(place)
    environment = {
        "HOME": home, "XDG_RUNTIME_DIR": os.path.join(home, "run"), "PATH": f"{PROGRAMS}:/usr/bin:/bin", "LC_ALL": "C.UTF-8",
        "TZ": zone_name(Server.offset), "TERM": "dumb", **desktop.environment,
    }
    try:
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
            print(f"$ {command}", flush=True)
            code, shown = in_terminal(command, home, environment, desktop.press if command.startswith("stormy notify") else lambda: None)
            pattern = "".join(r"(?:.*\n)+" if line == "…" else re.escape(line) + r"\n" for line in comparable(expected).splitlines())
            if code != 0 or not re.fullmatch(pattern, comparable(shown)):
                sys.exit(f"readme.py: {command}: exit code {code}. README shows:\n{expected}The command printed:\n{shown}")
    finally:
        subprocess.run([os.path.join(PROGRAMS, "stormy"), "quit"], env=environment, capture_output=True)
        desktop.stop()
    if list(Server.photos) != ["/photos/storm.jpg"]:
        sys.exit(f"readme.py: the server has {sorted(Server.photos)}")
    location = subprocess.run(["exiftool", "-GPSPosition", "-"], input=Server.photos["/photos/storm.jpg"], capture_output=True).stdout
    if location:
        sys.exit(f"readme.py: the server has the location of the photo: {location}")
    print("README's quick start printed what README shows.")


def files(text: str) -> dict[str, str]:
    """Returns every code block by the path of its file. The paragraph before the block begins with this path."""
    found, paragraph, block, language, ended = {}, [], None, "", True
    for line in text.splitlines():
        if block is not None:
            if line == "```":
                name = re.match(r"(?:The file )?`([\w./-]+\.\w+)`", paragraph[0]) if paragraph else None
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


def steps(text: str, before: str = "Type these commands in a terminal, in the folder of the app:") -> list[tuple[str, list[str]]]:
    """Returns the lines of every shell block that follows the paragraph `before`, each with the text of the page up to the block."""
    blocks = re.finditer(rf"^{re.escape(before)}\n\n```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text[:block.start()], [line.split("  #")[0].strip() for line in block[1].splitlines()]) for block in blocks]


class Reader:
    """Runs the commands of a page in an empty folder next to the checkout, with an empty home folder."""

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
        # The first commands of the page do not need files that the page shows later.
        found = files(steps(text)[0][0])
        # The build folder is kept, because another page uses the same checkout.
        for name in os.listdir(self.app) if os.path.isdir(self.app) else []:
            if name != ".build":
                path = os.path.join(self.app, name)
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
        for name, body in found.items():
            self.write(name, body)

    def write(self, name: str, body: str) -> None:
        path = os.path.join(self.app, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(body)

    def type(self, lines: list[str]) -> str:
        """Runs the lines. Ends the script if a line fails. Returns the output of the last line."""
        printed = ""
        for line in lines:
            print(f"$ {line}", flush=True)
            done = self.run(line)
            printed = done.stdout
            if done.returncode != 0:
                sys.exit(f"readme.py: {line}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return printed

    def run(self, line: str) -> subprocess.CompletedProcess:
        # The line is passed on standard input. If the line were an argument of the shell, a search for processes by their
        # arguments would find the shell.
        return subprocess.run(["sh"], input=line, cwd=self.app, env=self.environment, capture_output=True, text=True)

    def quietly(self, line: str) -> str:
        return self.run(line).stdout


def first_app(reader: Reader) -> None:
    text = open(FIRST_APP).read()
    reader.make(text, ["Package.swift", "Sources/tide/Tide.swift", "Sources/tide/tide-Info.plist"])
    printed = reader.type(steps(text)[0][1])
    reader.quietly(".build/debug/tide background quit")
    if "TideMorning" not in printed or "completed" not in printed or Server.asked != ["/tide.txt"]:
        sys.exit(f"readme.py: the app was not launched, or fetched nothing:\n{printed}")
    print("The first app was made, built, run and launched.")


def twelve_lines(reader: Reader) -> None:
    """Builds README's lines of Swift with the package and the manifest of the first app."""
    body = re.search(r"^```swift\n(.*?)^```$", open(README).read(), re.MULTILINE | re.DOTALL)[1]
    if len(body.splitlines()) > 12:
        sys.exit(f"readme.py: README shows {len(body.splitlines())} lines of Swift")
    reader.write("Sources/tide/Tide.swift", body)
    reader.type(["swift build --product tide"])
    print("README's lines of Swift were built.")


def code_lines(text: str) -> int:
    """The number of lines that are neither empty nor a comment."""
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
            sys.exit(f"readme.py: the episode is missing\n{reader.quietly('.build/debug/podcast background history')}")
        os.remove(episode)

    printed = reader.type(run)
    if "org.example.podcast.refresh" not in printed or "completed" not in printed:
        sys.exit(f"readme.py: the app was not launched:\n{printed}")
    wait_for_episode()
    reader.type(kill)
    wait_for_episode()
    reader.quietly(".build/debug/podcast background quit")
    print("The tutorial's app was made, built, run, launched and killed.")
    if ships:
        reader.type(steps(text, "The next commands link the Swift runtime into the programs, and put the program of the agent into the folder `libexec`:")[0][1])
        printed = reader.type(["~/.local/bin/podcast", "~/.local/bin/podcast background why"])
        reader.quietly("~/.local/bin/podcast background uninstall; ~/.local/bin/podcast background quit")
        if "org.example.podcast.refresh" not in printed:
            sys.exit(f"readme.py: the installed app does not work:\n{printed}")
        print("The tutorial's app was packaged and installed.")


def main() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    with tempfile.TemporaryDirectory(prefix="quick-start-") as place:
        quick_start(place, port)
    if "--quick-start" in sys.argv[1:]:
        return
    with tempfile.TemporaryDirectory(prefix="readme-") as place:
        os.symlink(ROOT, os.path.join(place, "stormy"))
        reader = Reader(place, port)
        first_app(reader)
        twelve_lines(reader)
        tutorial(reader, "--ship" in sys.argv[1:])


main()
