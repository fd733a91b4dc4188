"""Compares downloads with curl on the same machine in the same run: nginx on loopback, release builds, medians of paired runs.

    python3 Tests/Laboratory/Benchmarks/transfers.py [RUNS]

Prints each result with its limit. Exits with 1 if the download of 1 GiB or the choice of the next transfer exceeds its limit.
"""
import json
import os
import statistics
import subprocess
import sys
import time

from support import BIN, Bench, memory, timed

RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 9
GIB = 1 << 30


def summary(values, unit="s"):
    return f"median {statistics.median(values):.3f} {unit} ({min(values):.3f} to {max(values):.3f})"


def main():
    bench = Bench(http="sendfile on;")
    folder = bench.folder
    environment = bench.environment = bench.environment | {
        "COURIER_LOG": "/dev/null", "COURIER_FOLDER": str(folder / "courier"), "COURIER_CONNECTIONS": "16",
        "PROVING_LOG": "/dev/null", "BACKGROUND_UNLIMITED_REQUESTS": "1"}
    (folder / "courier").mkdir()
    with open(folder / "www/big", "wb") as big:
        for _ in range(256):
            big.write(os.urandom(GIB // 256))
    for number in range(200):
        (folder / f"www/{number}").write_bytes(os.urandom(100_000))
    missed = []
    with bench:
        url = bench.url
        timed([BIN / "stormy", "download", f"{url}/0", "-o", folder / "warm", "--wait"], env=environment)
        curls, stormies = [], []
        for _ in range(RUNS):
            for target in ("a", "b"):
                (folder / target).unlink(missing_ok=True)
            os.sync()
            began = time.monotonic()
            timed(["curl", "-s", "-o", folder / "a", f"{url}/big"])
            descriptor = os.open(folder / "a", os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
            curls.append(time.monotonic() - began)
            (folder / "a").unlink()
            os.sync()
            stormies.append(timed([BIN / "stormy", "download", f"{url}/big", "-o", folder / "b", "--wait"], env=environment))
        ratio = statistics.median(s / c for s, c in zip(stormies, curls))
        print(f"1 GiB, stormy download --wait: {summary(stormies)}; curl -o and fsync: {summary(curls)}; "
              f"median ratio {ratio:.2f} (bar 1.05 and 10 % for noise)", flush=True)
        if ratio > 1.05 * 1.1:
            missed.append("1 GiB")
        print(f"agent's memory after {RUNS} GiB: {memory(bench.agent(), 'VmRSS'):.1f} MiB (bar 40)", flush=True)
        timed([BIN / "courier-example", "get", f"{url}/0"], env=environment)
        curls, apps = [], []
        for _ in range(RUNS):
            together = [part for number in range(200) for part in ("-o", f"{folder}/c{number}", f"{url}/{number}")]
            curls.append(timed(["curl", "-s", "--parallel", *together]))
            apps.append(timed([BIN / "courier-example", "get", *[f"{url}/{number}" for number in range(200)]], env=environment))
        ratio = statistics.median(s / c for s, c in zip(apps, curls))
        # The measured time includes the start of the app, the commit of each task and the sync of each file. The program curl
        # uses 50 connections and does not sync.
        print(f"200 files of 100 kB, an app's background session of 16 connections, each task durable and delivered: {summary(apps)}; "
              f"curl --parallel: {summary(curls)}; median ratio {ratio:.1f} (bar 1.0)", flush=True)
        subprocess.run([BIN / "proving-ground", "fill-transfers", "100000"], env=environment | {"PROVING_GROUND_NO_AGENT": "1"}, check=True)
        picks = [json.loads(subprocess.run([BIN / "proving-ground", "pick"], env=environment | {"PROVING_GROUND_NO_AGENT": "1"},
                                           check=True, capture_output=True).stdout)["pick"] * 1000 for _ in range(RUNS)]
        print(f"100,000 transfers queued, the choice of the next: {summary(picks, 'ms')} (bar 1)", flush=True)
        if statistics.median(picks) > 1:
            missed.append("choice")
    if missed:
        sys.exit("beyond its bar: " + ", ".join(missed))


main()
