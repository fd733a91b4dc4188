"""Measures how long an app waits until 1,000 notifications are in the ledger. Uses release builds and a desktop with dunst.

    python3 Tests/Laboratory/Benchmarks/notifications.py

Runs five bursts, each in a new home, including the start of its agent. In each run, 1,000 durable writes of 8 KiB to the same disk
are measured for comparison. In the median run, all notifications have to be in the ledger within 1 s, or within three times the
durable writes if the disk is slower. A few notifications have to be on the screen, and a command has to receive a response of the
agent within a second. Exits with 1 if a requirement is not met.
"""
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from benchmark import Desktop

BIN = pathlib.Path(__file__).resolve().parents[3] / ".build/release"
COUNT, BAR, RATIO, HANDFUL = 1000, 1.0, 3, 6


def bare_writes(folder):
    """Returns the seconds of as many writes, each of which is on the disk before the next write."""
    block, begun = os.urandom(8192), time.monotonic()
    with open(folder / "bare", "wb") as file:
        for _ in range(COUNT):
            file.write(block)
            file.flush()
            os.fdatasync(file.fileno())
    return time.monotonic() - begun


def burst(desktop, folder):
    """Returns the seconds of the burst, the longest response of the agent, and the number of shown notifications."""
    environment = desktop.environment | {
        "HOME": str(folder), "XDG_STATE_HOME": f"{folder}/state", "PROVING_LOG": "/dev/null", "BACKGROUND_AGENT": str(BIN / "background-agent")}
    ground = BIN / "proving-ground"
    added = subprocess.Popen([ground, "notify", "storm", "title=Storm", "level=1", f"count={COUNT}"], env=environment,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    longest = 0.0
    while added.poll() is None:
        begun = time.monotonic()
        subprocess.run([ground, "background", "status", "--json"], env=environment, capture_output=True)
        longest = max(longest, time.monotonic() - begun)
    seconds = float(re.search(r"in ([\d.]+) s", added.stdout.read()).group(1))

    def told():
        rows = json.loads(subprocess.run(
            ["sqlite3", "-json", f"{folder}/state/proving-ground/agent.sqlite",
             "SELECT SUM(state = 'delivered') AS shown, SUM(state IN ('delivered', 'gathered')) AS told FROM notification"],
            capture_output=True, text=True).stdout)[0]
        return rows["shown"], rows["told"]

    end = time.monotonic() + 60
    # The summary is an additional notification.
    while told()[1] < COUNT + 1 and time.monotonic() < end:
        time.sleep(0.05)
    shown = told()[0] if told()[1] >= COUNT + 1 else None
    subprocess.run([ground, "background", "quit"], env=environment, capture_output=True)
    return seconds, longest, shown


def main():
    folder, misses = pathlib.Path(tempfile.mkdtemp(prefix="stormy-bench-")), []
    desktop = Desktop(str(folder))
    runs = []
    try:
        for number in range(5):
            home = folder / f"home{number}"
            home.mkdir(mode=0o700)
            bare = bare_writes(folder)
            seconds, longest, shown = burst(desktop, home)
            runs.append((seconds, seconds / bare, longest))
            if shown != HANDFUL:
                misses.append(f"{shown} stand on the screen, not {HANDFUL}")
            if longest >= 1:
                misses.append(f"a command was answered after {longest:.2f} s")
    finally:
        desktop.close()
        shutil.rmtree(folder, ignore_errors=True)
    columns = list(zip(*runs))
    if statistics.median(columns[0]) >= BAR and statistics.median(columns[1]) >= RATIO:
        misses.append(f"{COUNT} took {statistics.median(columns[0]):.2f} s")
    print(f"{COUNT} notifications added one after another, the agent's start included: median {statistics.median(columns[0]):.2f} s, "
          f"{min(columns[0]):.2f} to {max(columns[0]):.2f}, {statistics.median(columns[1]):.1f} times as many bare durable writes; on the screen "
          f"{HANDFUL}; a command meanwhile was answered within {max(columns[2]):.2f} s")
    if misses:
        sys.exit("\n".join(misses))


if __name__ == "__main__":
    main()
