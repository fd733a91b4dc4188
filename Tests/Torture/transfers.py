#!/usr/bin/env python3
"""Kills the agent, the app, commands and the server repeatedly during downloads and photo uploads. Then checks every byte.

A round has seven downloads, of which one is cancelled, and ten photos. Six photos go to WebDAV (two of them with one name), two to plain PUT
and two to a tus server. All servers are real, and slow enough for kills in the middle of a transfer. A round also has a missed weather check
whose time is too short for its forecast. The forecast is handed over, and a real notification server shows the storm.

Every kill uses SIGKILL. The agent, the launched app or a command is killed, at a named point or at a random moment. Sometimes the server is
also killed. The named points are read from the sources, so that the test includes new points. Sometimes a file on the server is replaced by
another version of the same length. A round runs until all of its transfers have ended. The next round uses the same home. The test ends
after the given number of kills.

Each exit code is compared with the promised code and with the resulting states:
- `upload` of several photos, of which some may be held back, unreadable or missing: the exit code belongs to the first problem in the given
  order. All other photos are queued at once and arrive. A photo that is held back is listed as held.
- `download`: after exit code 0, the download is queued.
- `transfers pause`, `resume` and `retry` between two agents, sometimes with an unknown id, and `transfers cancel`: each named transfer has
  the state that the command sets.
- `place remove`: the named places are not listed.

- After every kill, no incomplete file has its final name, on this machine or on the server.
- After every round, the digest of each download is the digest of one complete version that the server had. Each photo is on the server once,
  under its name and unchanged. The folders contain nothing else. `stormy transfers` lists each transfer once, as completed.
- At the end, the spool is empty except for pictures of notifications on the screen. The app was notified of everything, every storm was
  shown, and the ledger passes its integrity check.

With --power, a power cut follows about half of the kills. All processes of the test's home are killed, and unsynced changes are lost
(power_cut.py).

Exits with 1 and keeps the folder if a check failed. STORMY_BINARIES names another folder of built binaries.

usage: transfers.py [--power] [KILLS] [SEED]
"""
import collections, contextlib, hashlib, json, os, pathlib, random, re, shutil, signal, sqlite3, subprocess, sys, tempfile, time, urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Interop"))
import power_cut, support, upload_servers

HAS_POWER_CUTS, KILLS, SEED = power_cut.arguments(150)
OPEN = "SELECT 1 FROM transfer WHERE state NOT IN ('completed', 'failed', 'cancelled') LIMIT 1"
UNSHOWN = "SELECT 1 FROM notification WHERE state IN ('pending', 'presenting') LIMIT 1"
MISSED = "UPDATE request SET occurrence = occurrence - 86400, earliestBegin = earliestBegin - 86400 WHERE identifier = 'StormyNoon'"
UNTOLD = "SELECT 1 FROM sessionEvent WHERE deliveredAt IS NULL LIMIT 1"
PHOTOS_AND_FILES = "SELECT id FROM transfer WHERE session IN ('StormyPhotos', 'StormyDownloads') AND state != 'cancelled'"
LIVE = "SELECT 1 FROM launch WHERE endedAt IS NULL LIMIT 1"
# The content of an existing file. In each round, one download replaces the existing file.
OLDER = b"an older file of that name"
# Exit codes of commands.
MISSING, UNAVAILABLE, UNREADABLE, TRY_AGAIN, HELD = 66, 69, 74, 75, 77
ENDED = ("completed", "failed", "cancelled")


def named_points():
    """Returns all points at which a process can be killed."""
    text = (support.ROOT / "Sources").rglob("KillPoint.swift")
    points = re.findall(r'^ *case \w+ = "([\w.]+)"$', next(text).read_text(), re.MULTILINE)
    assert points, "KillPoint.swift names no point"
    return sorted(set(points))


def digest(data):
    return hashlib.sha256(data).hexdigest()


# The digest of each file, by the identity and the state of the file.
digests_read = {}


def digest_of(path):
    if not path.exists():
        return "none"
    state = path.stat()
    key = path, state.st_ino, state.st_size, state.st_mtime_ns
    if key not in digests_read:
        digests_read[key] = support.digest(path)
    return digests_read[key]


def wait(what, seconds, is_so):
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s for {what}")
        time.sleep(0.05)


class Nginx(support.Server):
    def command(self):
        return support.nginx(
            self.folder, self.port, f"root {self.files}; limit_rate 1m; client_max_body_size 0; "
            f"location /v1/forecast {{ default_type application/json; limit_rate 2k; alias {self.folder}/forecast; }} "
            "location /photos/ { dav_methods PUT DELETE MKCOL COPY MOVE; } location /put/ { dav_methods PUT; }")


class Desktop:
    """A bus with a notification server on a separate screen."""

    def __init__(self, folder):
        folder.mkdir()
        address = f"unix:path={folder}/bus"
        environment = dict(os.environ, HOME=str(folder), DBUS_SESSION_BUS_ADDRESS=address)
        reader, writer = os.pipe()
        self.log = open(folder / "log", "wb")
        begin = lambda command, **more: subprocess.Popen(command, env=environment, stdout=self.log, stderr=self.log, **more)
        self.processes = [begin(["dbus-daemon", "--session", "--nofork", "--nopidfile", f"--address={address}"]),
                          begin(["Xvfb", "-displayfd", str(writer), "-screen", "0", "800x600x24"], pass_fds=[writer])]
        os.close(writer)
        with os.fdopen(reader) as numbers:
            environment["DISPLAY"] = ":" + numbers.readline().strip()
        wait("the bus", 20, (folder / "bus").exists)
        self.processes.append(begin(["dunst"]))
        subprocess.run(["gdbus", "wait", "--session", "--timeout", "20", "org.freedesktop.Notifications"], env=environment, check=True)
        self.environment = {name: environment[name] for name in ("DISPLAY", "DBUS_SESSION_BUS_ADDRESS")}

    def stop(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()


class Ground:
    """A throw-away home, its servers, and the record of kills and findings."""

    def __init__(self, dice):
        self.dice, self.findings, self.bags = dice, [], collections.defaultdict(list)
        # `kills` contains counts by the kind of kill. `tried` and `hit` contain counts by the kind of process and by the kill
        # point.
        self.kills, self.tried, self.hit = (collections.Counter() for _ in range(3))
        self.points = named_points()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="torture-transfers-"))
        self.folder.chmod(0o755)
        self.server = Nginx("nginx", self.folder / "server")
        # The destination's WebDAV folder does not exist yet. The first upload creates the folder.
        for place in ("files", "photos", "put"):
            (self.server.files / place).mkdir()
        self.url = f"http://127.0.0.1:{self.server.port}"
        self.desktop = Desktop(self.folder / "desktop")
        self.tus = None
        try:
            upload_servers.prepare("tuspyserver")
            # This server is never killed, because it loses the offsets of uploads when it is killed.
            self.tus = upload_servers.Server("tuspyserver", self.folder / "tus")
        except (subprocess.CalledProcessError, IndexError):
            print("no photos to a tus server: it cannot be had here")
        configuration = "\n".join((
            "[weather]", f'base_url = "{self.url}"', "[background]", "refresh_budget_seconds = 1", "grace_seconds = 1",
            "[upload]", "keep_location = true",
            "[upload.destinations.home]", 'kind = "webdav"', f'url = "{self.url}/photos/new/"', "limit_kbps = 10000",
            "[upload.destinations.put]", 'kind = "put"', f'url = "{self.url}/put/"', "limit_kbps = 10000",
            *(["[upload.destinations.tus]", 'kind = "tus"', f'url = "http://127.0.0.1:{self.tus.port}/files/"', "limit_kbps = 2000"]
              if self.tus else []), ""))
        self.home = support.Home(self.folder / "home", configuration)
        # A configuration with which photos are cleaned before the upload.
        careful = self.folder / "careful/stormy/config.toml"
        careful.parent.mkdir(parents=True)
        careful.write_text(configuration.replace("keep_location = true\n", ""))
        careful.chmod(0o600)
        self.careful = {"XDG_CONFIG_HOME": str(careful.parents[1])}
        self.home.environment.update(self.desktop.environment)
        self.home.environment["STORMY_NO_AGENT"] = "1"
        self.ledger = self.folder / "home/state/stormy/agent.sqlite"
        self.log, self.process = open(self.folder / "agents.log", "ab"), None
        # The folder in which Stormy's processes write their files.
        self.kept = self.folder / "home"
        self.disk = power_cut.Disk(self.kept, self.folder / "unsynced") if HAS_POWER_CUTS else None
        if self.disk:
            self.home.environment.update(self.disk.environment)
        self.got = self.kept / "got"
        self.got.mkdir()
        # `versions` contains, for each download path, the digests of the server's versions. `photos` contains, for each wanted
        # name, the digests of the photos.
        self.versions, self.photos, self.fixed = {}, {}, set()
        # `held` contains the paths of photos that must be held. `cancelled` contains the cancelled downloads by their transfer
        # id.
        self.held, self.cancelled = set(), {}
        # The digests of the photos for the tus server, because this server chooses the names.
        self.unnamed = collections.Counter()

    def rows(self, query, *values):
        if not self.ledger.exists():
            return []
        # The ledger is opened read-only. If it were writable, the last connection to close would clean up after a killed agent.
        connection = sqlite3.connect(f"file:{self.ledger}?mode=ro", uri=True, timeout=10)
        try:
            return connection.execute(query, values).fetchall()
        except sqlite3.OperationalError as error:
            # The first command was killed before it had created the tables.
            if "no such table" not in str(error):
                raise
            return []
        finally:
            connection.close()

    # MARK: Curses

    def own_points(self, kind):
        return [point for point in self.points if point.startswith("agent.") == (kind == "agent")]

    def curse(self, kind, is_first=False):
        """Returns a named point of this kind of process, and the number of the passage at which the process is killed.

        Points that begin with "agent." belong to the agent, and the other points to apps and commands. Every point has its turn, and points
        that were hit before have more turns. The first agent of a round passes the most points, and its weather check passes the points of
        an await. The first agent or its app is therefore killed at a point that was never hit, if such a point exists.
        """
        own = self.own_points(kind)
        hit = [point for point in own if self.hit[kind, point]]
        self.dice.shuffle(own)
        if is_first:
            point = min([point for point in own if point not in hit] or own, key=lambda point: self.tried[kind, point])
        else:
            if not self.bags[kind]:
                self.bags[kind] = own + hit * 2
                self.dice.shuffle(self.bags[kind])
            point = self.bags[kind].pop()
        self.tried[kind, point] += 1
        return point, f"{point}:{self.dice.choice((1, 1, 2, 3, 6)) if self.hit[kind, point] else 1}"

    def was_hit(self, kind, point):
        self.hit[kind, point] += 1
        self.kills[f"{kind} at a point"] += 1

    def left(self):
        return KILLS - sum(self.kills.values()) + self.kills["server"] + self.kills["power"]

    def agent(self, **curse):
        self.log.write(f"-- {curse}\n".encode())
        self.log.flush()
        self.process = subprocess.Popen([support.BINARIES / "background-agent", "--app", "stormy"], stdout=self.log,
                                        stderr=self.log, env=self.home.environment | curse)
        return self.process

    def cut_power(self):
        """Follows about half of the kills: kills the other processes, and the disk loses changes."""
        if self.disk and self.dice.random() < 0.5:
            self.disk.cut(self.dice)
            self.kills["power"] += 1

    # MARK: Work

    def command(self, *arguments, may_die, codes=(0,), **variables):
        """Runs a command and returns its exit code, or `None` if the command was killed. Raises if the exit code is not one of `codes`."""
        fate = self.dice.random() if may_die else 1
        point, curse = self.curse("command") if fate < 0.4 else (None, None)
        self.process = subprocess.Popen(
            [support.STORMY, *map(str, arguments)], stdout=self.log, stderr=self.log,
            env=self.home.environment | variables | ({"BACKGROUND_CRASH_AT": curse} if point else {}))
        try:
            code = self.process.wait(self.dice.uniform(0, 0.2) if 0.4 < fate < 0.6 else 60)
        except subprocess.TimeoutExpired as late:
            if late.timeout == 60:
                raise
            self.process.kill()
            self.process.wait()
            self.kills["command at any moment"] += 1
            self.cut_power()
            return None
        if point and code == -signal.SIGKILL:
            self.was_hit("command", point)
            self.cut_power()
            return None
        if code not in codes:
            raise RuntimeError(f"`stormy {' '.join(map(str, arguments))}` ended with {code}, and not with {codes}")
        return code

    def insist(self, *arguments, codes=(0,), again=None, **variables):
        """Repeats a command until it is not killed. Returns its exit code. `again` are the allowed codes of repetitions, if different."""
        for tries in range(4):
            code = self.command(*arguments, may_die=tries < 3, codes=again or codes if tries else codes, **variables)
            if code is not None:
                return code

    def put_version(self, file, size=None):
        served = self.server.files / "files" / file.name
        data = self.dice.randbytes(size or served.stat().st_size)
        known = self.versions.setdefault(file, [])
        known.append(digest(data))
        new = served.with_suffix(".new")
        new.write_bytes(data)
        # Each version gets a different modification time, because nginx makes its entity tag from the length and the seconds.
        os.utime(new, (time.time(), time.time() - 86_400 + 10 * len(known)))
        new.replace(served)

    def start(self):
        self.serve_forecast()
        self.server.start()
        if self.tus:
            self.tus.start()
        self.home.stormy("place", "add", "Storm Bay", "-43.1,147.5", "--no-sync")
        self.home.stormy("schedule")

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
        for server in filter(None, (self.server, self.tus, self.desktop)):
            server.stop()

    def serve_forecast(self):
        """Writes a forecast with a storm in some hours. Each round has another storm."""
        start = int(time.time()) // 3600 * 3600
        hours, storm = range(start, start + 72 * 3600, 3600), self.dice.randrange(3, 40)
        new = self.server.folder / "forecast.new"
        new.write_text(json.dumps({
            "latitude": -43.1, "longitude": 147.5, "utc_offset_seconds": 0, "timezone": "GMT",
            "hourly_units": {"time": "unixtime", "wind_gusts_10m": "km/h", "precipitation": "mm"},
            "hourly": {"time": list(hours), "weather_code": [95 if abs(hour - storm) < 2 else 3 for hour in range(72)],
                       "wind_gusts_10m": [95.0 if abs(hour - storm) < 2 else 18.0 for hour in range(72)],
                       "precipitation": [4.5] * 72, "temperature_2m": [17.5] * 72}}))
        new.replace(self.server.folder / "forecast")

    def miss_noon(self):
        """Changes the ledger so that a weather check was missed. A separate process writes, so that unsynced.c records the write."""
        script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=20); c.execute(sys.argv[2]); c.commit()"
        subprocess.run([sys.executable, "-c", script, self.ledger, MISSED], env=self.home.environment, check=True)

    def queue(self, number):
        self.serve_forecast()
        self.miss_noon()
        # The last download is cancelled later.
        for index in range(7):
            file, more = self.got / f"{number}-{index}.bin", []
            self.put_version(file, self.dice.choice((50_000, 300_000, 1_000_000, 2_500_000, 4_000_000)))
            if index == 0:
                self.fixed.add(file)
                more = ["--sha256", self.versions[file][0]]
            if index == 1:
                file.write_bytes(OLDER)
            tries = 0
            while not self.rows("SELECT 1 FROM transfer WHERE destination = ?", str(file)):
                if tries and code == 0:
                    self.findings.append(f"`download` ended with 0, and {file.name} is not queued")
                    break
                code = self.command("download", f"{self.url}/files/{file.name}", "-o", file, *more, may_die=tries < 3)
                tries += 1
        size = self.dice.randrange(100_000, 1_500_000)
        for destination, place, indices in (("home", "photos/new", range(4)), ("put", "put", range(4, 6)),
                                            *([("tus", None, range(6, 8))] if self.tus else [])):
            files = []
            for index in indices:
                # The first two photos have the same name and length.
                files.append(self.folder / f"camera/{number}-{index}/noon 12:0{max(index, 1)} of {number} \u00fc.jpg")
                files[-1].parent.mkdir(parents=True)
                data = b"\xff\xd8\xff" + self.dice.randbytes(size if index < 2 else self.dice.randrange(50_000, 1_500_000))
                files[-1].write_bytes(data)
                if place:
                    self.photos.setdefault(f"{place}/{files[-1].name}", []).append(digest(data))
                else:
                    self.unnamed[digest(data)] += 1
            # If the command is repeated, it does not queue a photo again.
            self.insist("upload", "--to", destination, *files)
            self.look_for_queued(files)
        self.queue_among_others(number)
        self.remove_places(number)

    def queue_among_others(self, number):
        """Queues photos of which some cannot be sent. The others must arrive, and the exit code must belong to the first problem."""
        folder = self.folder / f"camera/{number}-several"
        folder.mkdir(parents=True)
        good = [folder / f"small {number}-{index}.jpg" for index in range(2)]
        for file in good:
            data = b"\xff\xd8\xff\xd9" + bytes([7]) * 1000 + file.name.encode()
            file.write_bytes(data)
            self.photos.setdefault(f"photos/new/{file.name}", []).append(digest(data))
        bad = {folder / f"held {number}.bmp": HELD, folder / f"loop {number}.jpg": UNREADABLE, folder / f"missing {number}.jpg": MISSING}
        held, loop, _ = bad
        # This file has a location and a format that the cleaner does not support.
        held.write_bytes(b"BM" + bytes([7]) * 900 + b'<rdf:Description exif:GPSLatitude="47,22.5N"/>' + held.name.encode())
        # A symbolic link to itself cannot be read, even by root.
        loop.symlink_to(loop)
        files = good + self.dice.sample(list(bad), self.dice.randrange(4))
        self.dice.shuffle(files)
        if held in files:
            self.held.add(str(held))
        code = next((bad[file] for file in files if file in bad), 0)
        self.insist("upload", "--to", "home", *files, codes=(code,), **self.careful)
        self.look_for_queued(good)

    def look_for_queued(self, files):
        """Checks after `upload` that these files are in the ledger."""
        listed = {row["sourceSha256"] for row in self.home.rows()}
        for file in files:
            if digest_of(file) not in listed:
                self.findings.append(f"`upload` ended, and {file} is not queued")

    def remove_places(self, number):
        names = [f"Bay {number}-{index}" for index in range(2)]
        for name in names:
            self.home.stormy("place", "add", name, "-40.1,140.5", "--no-sync")
        words = names + self.dice.choice(([], ["Nowhere"]))
        self.dice.shuffle(words)
        # If a command that removes places was killed, some places are already removed. The repeated command does not find these
        # places.
        self.insist("place", "remove", *words, codes=(MISSING if "Nowhere" in words else 0,), again=(0, MISSING))
        left = {place["name"] for place in json.loads(self.home.stormy("place", "list", "--json").stdout)}
        for name in left & set(names):
            self.findings.append(f"`place remove` ended, and {name} is listed")

    def states(self, ids):
        return dict(self.rows(f"SELECT id, state FROM transfer WHERE id IN ({', '.join(map(str, ids))})"))

    def order(self):
        """Pauses or retries some transfers between two agents, and then resumes them."""
        ids = [number for (number,) in self.rows(PHOTOS_AND_FILES)]
        if not ids:
            return
        named = self.dice.sample(ids, min(len(ids), 3))
        words = [str(number) for number in named]
        if self.dice.random() < 0.3:
            words.insert(self.dice.randrange(len(words) + 1), "987654321")
        promised = MISSING if len(words) > len(named) else 0
        for action in (self.dice.choice(("pause", "retry")), "resume"):
            # If a transfer is at a step that must not be done twice, `pause` returns TRY_AGAIN.
            codes = (promised, TRY_AGAIN) if action == "pause" else (promised,)
            # If a transfer has ended, an action does not apply to it. The first problem in this order determines the exit code.
            code = self.insist("transfers", action, *words, codes=(*codes, UNAVAILABLE))
            states = self.states(named)
            if code == UNAVAILABLE and not any(state in ENDED for state in states.values()):
                self.findings.append(f"`transfers {action}` ended with {code}, and none of {states} has ended")
            for number, state in states.items():
                is_paused = state == "paused" or state in ENDED or state == "running" and code != 0
                if not (is_paused if action == "pause" else state not in ("paused", "failed")):
                    self.findings.append(f"`transfers {action}` ended with {code}, and transfer {number} is {state}")

    def cancel(self, file):
        """Cancels the download to this path, unless the download has ended."""
        ((number, before),) = self.rows("SELECT id, state FROM transfer WHERE destination = ?", str(file))
        if before in ENDED:
            return
        code = self.insist("transfers", "cancel", number)
        state = self.states([number])[number]
        if state == "cancelled":
            self.cancelled[str(number)] = file
        else:
            self.findings.append(f"`transfers cancel` ended with {code}, and transfer {number} is {state}")

    def disturb(self):
        """Sometimes restarts the server or replaces a file. Called twenty times a second while an agent runs."""
        if self.dice.random() < 0.005:
            self.server.stop()
            self.kills["server"] += 1
            time.sleep(self.dice.uniform(0, 0.5))
            self.server.start()
        if self.dice.random() < 0.004:
            self.replace_begun()

    def replace_begun(self):
        """Replaces a file on the server whose download has begun."""
        begun = {pathlib.Path(place) for (place,) in self.rows(
            "SELECT destination FROM transfer WHERE destination IS NOT NULL AND finishedAt IS NULL AND bytesDone > 0")}
        if begun - self.fixed:
            self.put_version(self.dice.choice(sorted(begun - self.fixed)))

    def life(self, lives):
        """Runs one agent until it is killed."""
        is_first = lives == 0
        if is_first:
            is_app_through = all(self.hit["app", point] for point in self.own_points("app"))
            kind = "agent" if is_app_through else self.dice.choice(("agent", "app"))
        else:
            kind = self.dice.choice(("agent",) * 6 + ("app",) + ("any",))
        point, curse = (None, None) if kind == "any" else self.curse(kind, is_first)
        last = self.rows("SELECT COALESCE(MAX(id), 0) FROM launch")[0][0]
        agent = self.agent(**({"BACKGROUND_CRASH_AT" if kind == "agent" else "BACKGROUND_APP_CRASH_AT": curse} if point else {}))
        # A weather check needs more time than its time limit and its grace time, which are one second each.
        end = time.monotonic() + (self.dice.uniform(0, 1.5) if kind == "any" else 4 if is_first and kind == "app" else 2)
        # In each round, every further agent runs longer. A new agent shows hundreds of notifications again before it sends a
        # large photo.
        end += 0.2 * lives
        while time.monotonic() < end and agent.poll() is None and not (kind == "app" and self.app_died(point, last)):
            self.disturb()
            time.sleep(0.05)
        if agent.poll() is None:
            agent.kill()
            agent.wait()
            self.kills["agent at any moment"] += 1
        elif kind == "agent" and agent.returncode == -signal.SIGKILL:
            self.was_hit("agent", point)
        else:
            self.findings.append(f"an agent ended by itself with {agent.returncode}; its curse was {curse}")
        if kind == "app" and self.app_died(point, last):
            self.was_hit("app", point)
        self.cut_power()
        self.look_for_halves()
        # In some rounds, the next agent has a partial file of a file that the server no longer has.
        if self.dice.random() < 0.12:
            self.replace_begun()

    def app_died(self, point, last):
        # After an app's result, its end is not recorded. An app with this kill point cannot survive its result.
        seen = "result IS NOT NULL" if point == "app.afterResult" else "detail = 'the process was ended by signal 9'"
        return self.rows(f"SELECT 1 FROM launch WHERE id > ? AND {seen}", last)

    def quietly(self, what, seconds, is_so):
        """Runs an agent without kills until a condition is true."""
        agent = self.agent()
        # The agent handles a stop signal from the moment when this row exists.
        wait("an agent", 20, lambda: self.rows("SELECT 1 FROM fact WHERE name = 'agent' AND value LIKE ?", f'%"pid":{agent.pid},%'))
        wait(what, seconds, is_so)
        agent.terminate()
        if agent.wait(20) != 0:
            self.findings.append(f"a quiet agent ended with {agent.returncode}")

    def round(self, number):
        self.queue(number)
        lives = lives_after_the_end = 0
        while self.left() > 0 and lives_after_the_end < 2 and (self.rows(OPEN) or self.rows(UNTOLD)):
            self.life(lives)
            lives += 1
            if lives == 2:
                self.cancel(self.got / f"{number}-6.bin")
            elif self.dice.random() < 0.3:
                self.order()
            # After the last transfer has ended, launches of the app can still be killed. Each killed launch delays the next
            # launch.
            lives_after_the_end += not self.rows(OPEN)
        self.quietly("the end of every transfer", 180, lambda: not self.rows(OPEN))
        self.judge()

    # MARK: Judging

    def on_server(self):
        return {str(path.relative_to(self.server.files)): path for place in ("photos", "put")
                for path in (self.server.files / place).rglob("*") if path.is_file()}

    def look_for_halves(self):
        photos = set(sum(self.photos.values(), []))
        for file, versions in self.versions.items():
            if file.exists() and digest_of(file) not in (*versions, digest(OLDER)):
                self.findings.append(f"{file.name} bears its name and is no version")
        for name, path in self.on_server().items():
            if not path.name.startswith(".") and digest_of(path) not in photos:
                self.findings.append(f"{name} bears its name on the server and is no photo")

    def judge(self):
        say = self.findings.append
        # Forecasts are not checked. Photo requests without a photo are also not checked, because Stormy cancels them when it
        # calls off the storm.
        rows = [row for row in self.home.rows() if row["kind"] == "upload" and (row["file"] or row["sourceSha256"])
                or row["kind"] == "download" and "/v1/forecast" not in row["url"]]
        held = collections.Counter(row["file"] for row in rows if row["state"] == "held")
        if held != collections.Counter(self.held):
            say(f"listed as held are {dict(held)}, and held back were {self.held}")
        cancelled = {str(row["id"]): row["state"] for row in rows if str(row["id"]) in self.cancelled}
        if cancelled != {number: "cancelled" for number in self.cancelled}:
            say(f"cancelled were {sorted(self.cancelled)}, and listed are {cancelled}")
        rows = [row for row in rows if row["state"] != "held" and str(row["id"]) not in self.cancelled]
        gone = set(self.cancelled.values())
        listed = collections.Counter(row["file"] if row["kind"] == "download" else row["sourceSha256"] for row in rows)
        wanted = collections.Counter([*map(str, set(self.versions) - gone), *sum(self.photos.values(), [])]) + self.unnamed
        for what in (listed - wanted) + (wanted - listed):
            say(f"{what} is listed {listed[what]} times")
        there = {name: digest_of(path) for name, path in self.on_server().items()}
        unnamed = {f"files/{path.name}": digest_of(path) for path in self.tus.files.iterdir()
                   if path.is_file() and not path.suffix} if self.tus else {}
        # The agent may be killed before the response to the creation of an upload arrives. In this case the file on the server
        # stays empty until it expires.
        unnamed = {name: found for name, found in unnamed.items() if found != digest(b"")}
        if collections.Counter(unnamed.values()) != self.unnamed:
            say(f"the tus server has {unnamed}, and was given {self.unnamed}")
        for row in rows:
            name = urllib.parse.unquote(urllib.parse.urlsplit((row["receipt"] or {}).get("url", "")).path)[1:]
            found = digest_of(pathlib.Path(row["file"])) if row["kind"] == "download" else (there | unnamed).get(name)
            if row["state"] != "completed" or row["error"]:
                say(f"transfer {row['id']} of {row['file']} is {row['state']}: {row['error']}")
            elif not row["sha256"] == found == (row["sourceSha256"] or found):
                say(f"transfer {row['id']} of {row['file']}: proven {row['sha256']}, found {found}, given {row['sourceSha256']}")
        for file, versions in self.versions.items():
            # If a download is cancelled while it gets its final name, its file may have this name.
            if digest_of(file) not in versions and not (file in gone and digest_of(file) == "none"):
                say(f"{file.name} is no version: {digest_of(file)}")
        for extra in set(self.got.iterdir()) - set(self.versions):
            say(f"left beside the downloads: {extra.name}")
        for name, digests in self.photos.items():
            names = [name, name.replace(".jpg", "-1.jpg")][:len(digests)]
            if sorted(digests) != sorted(there.pop(name, "none") for name in names):
                say(f"{name} is not there as it was given")
        for name in there:
            say(f"a second time, or left over, on the server: {name}")

    def settle(self):
        """Waits until the app is notified of everything and the spool is empty. Then checks everything."""
        # After repeated kills, the next launch is delayed for up to an hour. One second is too short to deliver hundreds of
        # events.
        configuration = self.kept / "config/stormy/config.toml"
        configuration.write_text(re.sub("(refresh_budget|grace)_seconds = 1\n", "", configuration.read_text()))
        self.command("status", may_die=False)
        with contextlib.closing(sqlite3.connect(self.ledger, timeout=10)) as ledger, ledger:
            ledger.execute("DELETE FROM launch WHERE kind = 'urlSession' AND endedAt IS NOT NULL")
        spool = self.ledger.parent / "spool"
        # A crash can leave files without a row in the ledger. The agent keeps new files, because a command may soon write the
        # row.
        for file in spool.iterdir():
            os.utime(file, (time.time() - 7_200,) * 2)
        # Each notification on the screen has one picture. After a restart, a notification that is shown again is not on the
        # screen for a short time.
        standing = lambda: len(self.rows("SELECT 1 FROM notification WHERE state = 'delivered'"))
        pictures = lambda: [file for file in spool.iterdir() if file.name.startswith("attachment-")]
        left = lambda: len(list(spool.iterdir())) > len(pictures()) or len(pictures()) > standing()
        self.quietly("the word to the app, and an empty spool", 400,
                     lambda: not (self.rows(UNTOLD) or self.rows(LIVE) or self.rows(UNSHOWN) or left()))
        self.judge()
        notes = self.rows("SELECT note FROM transfer WHERE kind = 'download'")
        ways = collections.Counter(re.sub("[0-9]+", "N", note or "no word") for (note,) in notes)
        replaced = sum(len(versions) - 1 for versions in self.versions.values())
        print("downloads at last:", ", ".join(f"{count} × {way}" for way, count in ways.most_common()),
              f"({replaced} times a file was replaced of which a part had come)")
        if self.rows("PRAGMA integrity_check") != [("ok",)]:
            self.findings.append("the ledger is damaged")


def main():
    print(f"seed {SEED}", flush=True)
    ground, begin, rounds = Ground(random.Random(SEED)), time.monotonic(), 0
    try:
        ground.start()
        while ground.left() > 0 and not ground.findings:
            ground.round(rounds)
            rounds += 1
            print(f"round {rounds}: {KILLS - ground.left()} kills, {time.monotonic() - begin:.0f} s", flush=True)
        ground.settle()
    except (TimeoutError, RuntimeError, subprocess.SubprocessError) as error:
        ground.findings.append(str(error))
    finally:
        ground.stop()
    print(", ".join(f"{count} × {kind}" for kind, count in sorted(ground.kills.items())), f"in {time.monotonic() - begin:.0f} s")
    if ground.disk:
        print(f"power cuts took back {ground.disk.lost_writes} writes and {ground.disk.lost_names} changes of names")
    for point in ground.points:
        hit, tried = ([(kind, count) for (kind, name), count in counts.items() if name == point and count]
                      for counts in (ground.hit, ground.tried))
        of = ", ".join(f"{count} × {kind}" for kind, count in tried)
        print(f"  {point:26} " + (f"killed {', '.join(f'{count} × {kind}' for kind, count in hit)} (tried {of})" if hit
                                  else f"not reached here (tried {of or 'never'})"))
    for finding in ground.findings:
        print(f"FOUND {finding}")
    if ground.findings:
        print(f"seed {SEED}; everything is kept in {ground.folder}")
        raise SystemExit(1)
    print(f"{sum(ground.kills.values()) - ground.kills['power']} kills, {(17 if ground.tus else 15) * rounds} transfers: every file whole, every photo once")
    shutil.rmtree(ground.folder)


if __name__ == "__main__":
    main()
