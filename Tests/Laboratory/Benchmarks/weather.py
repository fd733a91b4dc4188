"""Measures the weather: a large response, a thousand places in one check, and the report of a year.

usage: weather.py

Prints each result with its limit. Exits with 1 if a limit is exceeded.
"""
import json
import os
import pathlib
import resource
import sqlite3
import statistics
import subprocess
import sys
import threading
import time

from support import BIN, Bench, memory

RUNS = 9
PLACES = 1_000
missed = []


def bar(name, value, most, unit):
    print(f"{name}: {value:.1f} {unit} (bar {most})", flush=True)
    if value > most:
        missed.append(name)


def forecast(hours, code=95):
    start = int(time.time()) // 3600 * 3600
    numbers = lambda value: [value] * hours
    return json.dumps({
        "latitude": 1, "longitude": 1, "timezone": "GMT",
        "hourly_units": {"time": "unixtime", "wind_gusts_10m": "km/h", "precipitation": "mm"},
        "hourly": {
            "time": [start + 3600 * n for n in range(hours)], "weather_code": numbers(code), "precipitation": numbers(2.4),
            "showers": numbers(1.2), "precipitation_probability": numbers(80), "wind_gusts_10m": numbers(42.5),
            "temperature_2m": numbers(20.5), "cape": numbers(900.0), "convective_inhibition": numbers(12.0),
            "lifted_index": numbers(-3.1)}})


def spent(command, **options):
    """Returns the CPU seconds of a child process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Peak(threading.Thread):
    """Measures the maximum memory of a process that the agent launches. Such a process has no arguments."""

    def __init__(self, program):
        super().__init__(daemon=True)
        self.program, self.most, self.is_over = str(program), 0.0, False

    def run(self):
        while not self.is_over:
            for folder in pathlib.Path("/proc").iterdir():
                if not folder.name.isdigit():
                    continue
                try:
                    words = (folder / "cmdline").read_bytes().split(b"\0")
                    if os.readlink(folder / "exe") == self.program and len(words) == 2:
                        self.most = max(self.most, memory(folder.name, "VmHWM"))
                except (OSError, StopIteration):
                    continue
            time.sleep(0.01)


# One percent of the latitudes have a storm.
bench = Bench(server="location /v1/forecast { if ($arg_latitude ~ ^7[0-9]*\\.7) { rewrite ^ /stormy last; } }")
with bench:
    folder, env, stormy = bench.folder, bench.environment, BIN / "stormy"
    (folder / "config/stormy").mkdir(parents=True)
    file = folder / "config/stormy/config.toml"
    file.write_text(f'[weather]\nbase_url = "{bench.url}"\n')
    file.chmod(0o600)
    (folder / "www/v1").mkdir()
    answer = folder / "www/v1/forecast"
    run = lambda *words: subprocess.run([stormy, *words], env=env, check=True, capture_output=True, text=True).stdout

    # The difference between a large and a small response is the time to decode, to assess and to store the response.
    run("place", "add", "Here", "1,1", "--no-sync")
    seen, writes, began = {}, 0, time.time() - 1_000
    for _ in range(RUNS):
        for hours in (72, 17_000):
            answer.write_text(forecast(hours))
            # Each response is different, even if two responses are sent in one second.
            writes += 1
            os.utime(answer, (began + writes, began + writes))
            seen.setdefault(hours, []).append(spent([stormy, "check", "--fresh"], env=env))
    size = answer.stat().st_size
    more = statistics.median(big - small for small, big in zip(seen[72], seen[17_000]))
    bar(f"an answer of {size / 1e6:.2f} MB, beyond one of 72 hours", more * 1000, 30, "ms")

    # One check covers a thousand places, and ten of the places have a storm.
    answer.write_text(forecast(72, code=3))
    (folder / "www/stormy").write_text(forecast(72))
    store = sqlite3.connect(folder / "data/stormy/stormy.sqlite")
    store.executemany(
        "INSERT INTO place (name, latitude, longitude) VALUES (?, ?, ?)",
        [(f"Place {n}", n % 80 + n // 100 / 10, n / 10) for n in range(1, PLACES)])
    store.commit()
    run("schedule")
    peak = Peak(stormy.resolve())
    peak.start()
    began = time.monotonic()
    said = run("simulate", "launch", "StormyNoon", "--wait")
    bar(f"a noon of {PLACES} places", time.monotonic() - began, 30, "s")
    peak.is_over = True
    bar("its memory at most", peak.most, 64, "MiB")
    checked = store.execute("SELECT count(*) FROM checkResult WHERE trouble IS NULL").fetchone()[0]
    if "completed" not in said or checked != PLACES:
        missed.append(f"the noon: {said.strip()}; {checked} of {PLACES} places have an answer")

    # The history contains the checks of a year, with a storm each week at ten places.
    store.execute("DELETE FROM place WHERE id > 10")
    now = time.time()
    store.executemany(
        "INSERT INTO storm (place, begins, ends, isTold, isClosed, reasons) VALUES (1, ?, ?, 1, 1, ?)",
        [(now - week * 604_800, now - week * 604_800 + 7_200, "[]") for week in range(1, 53)])
    store.commit()
    store.close()
    run("quit")
    ledger = sqlite3.connect(folder / "state/stormy/agent.sqlite")
    ledger.executemany(
        """INSERT INTO launch (kind, identifier, requestToken, generation, reason, simulated, startedAt, isPersonChoosing, endedAt, outcome)
           VALUES ('appRefresh', 'StormyNoon', 't', 1, 'due', 0, ?, 0, ?, 'completed')""",
        [(now - day * 86_400, now - day * 86_400 + 4) for day in range(365)])
    ledger.commit()
    ledger.close()
    page = folder / "page.html"
    times = []
    for _ in range(RUNS):
        began = time.monotonic()
        run("report", "-o", str(page))
        times.append(time.monotonic() - began)
    bar("the report of a year", statistics.median(times) * 1000, 300, "ms")
    bar("its size", page.stat().st_size / 1e6, 1, "MB")
print("missed: " + "; ".join(missed) if missed else "every bar is kept")
sys.exit(1 if missed else 0)
