"""Measures the CPU, wake-ups, written bytes and memory of a day with a systemd user manager, and of an hour without work.

    python3 Tests/Laboratory/Benchmarks/day.py [SECONDS]

The day is played in a minute: a login, and a noon with a check of the weather. A separate cgroup counts all processes: the
agent, the app, `systemctl`, and the work of the user manager. The hour is a real hour, or SECONDS. For comparison, a resident
program with a timer of 5 s runs at the same time, as usual alert programs do.

Exits with 1 if the day costs more than 150 ms, or if a process of Stormy is running in the hour.
"""
import datetime
import json
import pathlib
import sys
import time

from support import BIN, Bench, memory

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "Compare"))
from ground import Ground, obstacle, until  # noqa: E402

HOUR = float(sys.argv[1]) if len(sys.argv) > 1 else 3_600
RIVAL = "import time\nwhile True: time.sleep(5)"


def cpu(ground):
    """Returns the CPU seconds of all processes so far, including processes that have ended."""
    lines = pathlib.Path("/sys/fs/cgroup/unified", ground.group, "cpu.stat").read_text().splitlines()
    return int(lines[0].split()[1]) / 1e6


def switches(process):
    lines = pathlib.Path(f"/proc/{process}/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)


def there(ground):
    """Returns whether the agent is running. The user manager is not queried, because a query would be counted."""
    return bool(ground.find("background-agent"))


def gone(ground):
    return not there(ground)


class Written:
    """Counts the bytes that the agent and the app write. The kernel's counter ends with its process, so it is read often."""

    def __init__(self, ground):
        self.ground, self.known = ground, {}

    def look(self):
        for name in ("background-agent", "stormy"):
            for number in self.ground.find(name):
                try:
                    text = pathlib.Path(f"/proc/{number}/io").read_text()
                    self.known[number] = int(text.split("write_bytes: ")[1].split()[0])
                except (OSError, IndexError):
                    pass

    def total(self):
        return sum(self.known.values())


def follow(ground, condition, limit):
    """Waits for a condition. Returns the bytes that were written, and the seconds that the agent was running."""
    written, began, seen = Written(ground), time.monotonic(), 0.0
    while not condition():
        written.look()
        if ground.find("background-agent"):
            seen = time.monotonic() - began
        if time.monotonic() - began > limit:
            raise RuntimeError(f"not in {limit} s: {ground.said()[-500:]}")
        time.sleep(0.05)
    return written.total(), seen


def login(ground):
    """Returns the CPU seconds of one login until its agent has exited, and whether the login started an agent."""
    before = cpu(ground)
    ground.log_in()
    end, started = time.monotonic() + 3, False
    while time.monotonic() < end:
        started = started or there(ground)
        time.sleep(0.05)
    until(lambda: gone(ground), 60, "the agent does not leave")
    return cpu(ground) - before, started


def play(ground, url):
    stormy = BIN / "stormy"
    configuration = ground.folder / "config/stormy/config.toml"
    configuration.parent.mkdir(parents=True)
    configuration.write_text(f'[weather]\nprovider = "open-meteo"\nbase_url = "{url}"\n')
    ground.environment["BACKGROUND_AGENT"] = str(BIN / "background-agent")
    ground.power_cut()
    bare, _ = login(ground)
    ground.run(stormy, "place", "add", "Here", "1,1", "--no-sync", check=True)
    noon = datetime.datetime.now() + datetime.timedelta(seconds=60)
    ground.run(stormy, "schedule", "--exact", "--at", noon.strftime("%H:%M:%S"), check=True)
    until(lambda: there(ground), 30, "the agent does not start")
    until(lambda: gone(ground), 60, "the agent does not leave")
    ground.power_cut()
    whole, started = login(ground)
    print(f"a login, at which {'the agent starts' if started else 'nothing of Stormy starts'}: "
          f"{1000 * (whole - bare):.0f} ms of CPU more than one without Stormy ({1000 * bare:.0f} ms)", flush=True)
    before = cpu(ground)
    follow(ground, lambda: there(ground), 90)
    written, stayed = follow(ground, lambda: gone(ground), 60)
    time.sleep(1)
    spent = cpu(ground) - before
    history = ground.run(stormy, "history", "--json", STORMY_NO_AGENT="1").stdout
    if history.count('"completed"') != 1:
        raise RuntimeError(f"the noon did not run once: {history}")
    print(f"a noon, from the timer to the agent's leave: {1000 * spent:.0f} ms of CPU, {written / 1024:.0f} KiB written, there for {stayed:.1f} s", flush=True)
    return whole - bare + spent


def rest(ground):
    """Returns the processes of Stormy that are running in the hour without work."""
    rival = ground.start(["python3", "-c", RIVAL])
    time.sleep(2)
    manager = ground.find("/systemd")
    before = cpu(ground)
    was = {number: switches(number) for number in [rival.pid, *manager]}
    time.sleep(HOUR)
    found = ground.find("background-agent") + ground.find("stormy")
    woken = {number: switches(number) - count for number, count in was.items()}
    print(f"{HOUR:.0f} s in which nothing is due: Stormy has {len(found)} processes in memory, {sum(memory(number, 'VmRSS') for number in found):.1f} MiB; "
          f"the user manager woke up {sum(woken[number] for number in manager)} times, a resident program with a timer "
          f"every 5 s {woken[rival.pid]} times, with {memory(rival.pid, 'VmRSS'):.1f} MiB; all of them used {1000 * (cpu(ground) - before):.0f} ms of CPU", flush=True)
    return found


def main():
    if obstacle():
        sys.exit(obstacle())
    bench = Bench()
    hours = [int(time.time()) // 3600 * 3600 + 3600 * hour for hour in range(72)]
    answer = {"latitude": 1.0, "longitude": 1.0, "utc_offset_seconds": 0, "timezone": "UTC", "hourly_units": {"time": "unixtime"},
              "hourly": {"time": hours, "weather_code": [3] * 72, "wind_gusts_10m": [20.0] * 72, "precipitation": [0.1] * 72,
                         "temperature_2m": [20.0] * 72, "cape": [100.0] * 72}}
    (bench.folder / "www/v1").mkdir()
    (bench.folder / "www/v1/forecast").write_text(json.dumps(answer))
    ground = Ground("day")
    missed = []
    try:
        with bench:
            day = play(ground, bench.url)
            print(f"a day of one login and one noon: {1000 * day:.0f} ms of CPU (bar 150)", flush=True)
            if day > 0.150:
                missed.append("CPU of a day")
            if rest(ground):
                missed.append("an agent stays in memory")
    finally:
        ground.close()
    if missed:
        sys.exit("beyond its bar: " + ", ".join(missed))


main()
