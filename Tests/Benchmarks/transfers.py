"""Downloads beside curl, on the same machine in the same run: nginx on loopback, release builds, medians of paired runs.

    python3 Tests/Benchmarks/transfers.py [RUNS]

Prints what was seen beside each bar. Exits 1 if the download of 1 GiB or the choice of the next transfer misses its own.
"""
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / ".build/release"
RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 9
GIB = 1 << 30


def summary(values, unit="s"):
    return f"median {statistics.median(values):.3f} {unit} ({min(values):.3f} to {max(values):.3f})"


def timed(command, **options):
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    return time.monotonic() - began


def nginx(folder):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;" if os.getuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; {user} events {{}}\n"
        f"http {{ access_log off; sendfile on; {temporary} server {{ listen 127.0.0.1:{port}; root {folder}/www; }} }}\n")
    process = subprocess.Popen(["nginx", "-c", str(folder / "nginx.conf")], env=dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin"),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process, f"http://127.0.0.1:{port}"
        time.sleep(0.01)


def resident(environment, app):
    path = pathlib.Path(environment["XDG_STATE_HOME"]) / app / "agent.sqlite"
    import sqlite3
    fact = sqlite3.connect(path).execute("SELECT value FROM fact WHERE name = 'agent'").fetchone()[0]
    status = pathlib.Path(f"/proc/{json.loads(fact)['pid']}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-"))
    (folder / "www").mkdir()
    (folder / "run").mkdir(mode=0o700)
    environment = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "DBUS_SESSION_BUS_ADDRESS")}
    environment |= {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "run"), "XDG_STATE_HOME": str(folder / "state"),
                    "COURIER_LOG": "/dev/null", "COURIER_FOLDER": str(folder / "courier"), "COURIER_CONNECTIONS": "16",
                    "PROVING_LOG": "/dev/null", "BACKGROUND_UNLIMITED_REQUESTS": "1"}
    (folder / "courier").mkdir()
    with open(folder / "www/big", "wb") as big:
        for _ in range(256):
            big.write(os.urandom(GIB // 256))
    for number in range(200):
        (folder / f"www/{number}").write_bytes(os.urandom(100_000))
    server, url = nginx(folder)
    missed = []
    try:
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
        print(f"agent's memory after {RUNS} GiB: {resident(environment, 'stormy'):.1f} MiB (bar 40)", flush=True)
        timed([BIN / "courier-example", "get", f"{url}/0"], env=environment)
        curls, apps = [], []
        for _ in range(RUNS):
            together = [part for number in range(200) for part in ("-o", f"{folder}/c{number}", f"{url}/{number}")]
            curls.append(timed(["curl", "-s", "--parallel", *together]))
            apps.append(timed([BIN / "courier-example", "get", *[f"{url}/{number}" for number in range(200)]], env=environment))
        ratio = statistics.median(s / c for s, c in zip(apps, curls))
        # The app's own start, each task's commit and each file's sync are in it; curl has 50 connections and syncs nothing.
        print(f"200 files of 100 kB, an app's background session of 16 connections, each task durable and delivered: {summary(apps)}; "
              f"curl --parallel: {summary(curls)}; median ratio {ratio:.1f} (bar 1.0)", flush=True)
        subprocess.run([BIN / "proving-ground", "fill-transfers", "100000"], env=environment | {"PROVING_GROUND_NO_AGENT": "1"}, check=True)
        picks = [json.loads(subprocess.run([BIN / "proving-ground", "pick"], env=environment | {"PROVING_GROUND_NO_AGENT": "1"},
                                           check=True, capture_output=True).stdout)["pick"] * 1000 for _ in range(RUNS)]
        print(f"100,000 transfers queued, the choice of the next: {summary(picks, 'ms')} (bar 1)", flush=True)
        if statistics.median(picks) > 1:
            missed.append("choice")
    finally:
        subprocess.run([BIN / "stormy", "quit"], env=environment, capture_output=True)
        subprocess.run([BIN / "courier-example", "background", "quit"], env=environment, capture_output=True)
        # With its workers: left behind they would hold whatever reads this script's output.
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)
    if missed:
        sys.exit("beyond its bar: " + ", ".join(missed))


main()
