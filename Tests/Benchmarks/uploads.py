"""Photos beside curl, on the same machine in the same run: nginx on loopback, release builds, medians of paired runs.

    python3 Tests/Benchmarks/uploads.py [RUNS]

Prints what was seen beside each bar. Exits 1 if a bar is missed.
"""
import json
import os
import pathlib
import random
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
RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 5


def photo(seed, size):
    """Bytes of a JPEG that says nothing of a place, of about this size."""
    comment = random.Random(seed).randbytes(size)
    pieces = [comment[start:start + 65_000] for start in range(0, len(comment), 65_000)]
    body = b"".join(b"\xff\xfe" + (len(piece) + 2).to_bytes(2, "big") + piece for piece in pieces)
    return b"\xff\xd8" + body + BASE[2:]


def nginx(folder):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;" if os.getuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; {user} events {{}}\n"
        f"http {{ access_log off; {temporary} client_max_body_size 0; server {{ listen 127.0.0.1:{port}; root {folder}/www; "
        f"dav_methods PUT DELETE MKCOL COPY MOVE; create_full_put_path on; }} }}\n")
    process = subprocess.Popen(["nginx", "-c", str(folder / "nginx.conf")], env=dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin"),
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process, f"http://127.0.0.1:{port}"
        time.sleep(0.01)


def timed(command, **options):
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    return time.monotonic() - began


def resident(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


def queue(environment, photos):
    """Seconds, and the greatest memory of the command."""
    began = time.monotonic()
    process = subprocess.Popen([BIN / "stormy", "upload", "--to", "put", "-"], env=environment, stdin=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    process.stdin.write("\0".join(map(str, photos)).encode())
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    assert status == 0
    return time.monotonic() - began, usage.ru_maxrss / 1024


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-"))
    (folder / "www").mkdir()
    (folder / "run").mkdir(mode=0o700)
    environment = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "DBUS_SESSION_BUS_ADDRESS")}
    environment |= {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "run"), "XDG_STATE_HOME": str(folder / "state"),
                    "XDG_CONFIG_HOME": str(folder / "config"), "XDG_DATA_HOME": str(folder / "data")}
    server, url = nginx(folder)
    (folder / "config/stormy").mkdir(parents=True)
    configuration = folder / "config/stormy/config.toml"
    configuration.write_text(f'[upload.destinations.put]\nkind = "put"\nurl = "{url}/photos/"\n')
    configuration.chmod(0o600)
    global BASE
    subprocess.run(["convert", "-size", "64x48", "plasma:", folder / "base.jpg"], check=True)
    BASE = (folder / "base.jpg").read_bytes()
    missed = []
    try:
        ratios, ours, theirs = [], [], []
        for run in range(RUNS):
            camera = folder / f"camera{run}"
            camera.mkdir()
            photos = []
            for number in range(500):
                photos.append(camera / f"p{run}-{number}.jpg")
                photos[-1].write_bytes(photo(run * 1000 + number, 200_000))
            ours.append(timed([BIN / "stormy", "upload", "--wait", *photos], env=environment))
            places = [part for file in photos for part in ("-T", str(file), f"{url}/curl/{file.name}")]
            theirs.append(timed(["curl", "-s", "--parallel", *places]))
            ratios.append(ours[-1] / theirs[-1])
            shutil.rmtree(camera)
        ratio = statistics.median(ratios)
        print(f"500 photos of 200 kB, copied, cleaned, hashed, queued, sent and asked about: median {statistics.median(ours):.2f} s; "
              f"curl --parallel -T: {statistics.median(theirs):.2f} s; median ratio {ratio:.2f} (bar 1.5)", flush=True)
        if ratio > 1.5 * 1.1:
            missed.append("500 photos")

        camera = folder / "many"
        camera.mkdir()
        photos = []
        for number in range(10_000):
            photos.append(camera / f"m{number}.jpg")
            photos[-1].write_bytes(photo(10_000_000 + number, 20_000))
        closed = environment | {"STORMY_NO_AGENT": "1"}
        _, little = queue(closed, photos[:100])
        seconds, most = queue(closed, photos[100:])
        print(f"10,000 photos of 20 kB queued: {seconds:.1f} s (bar 10); memory {most:.0f} MiB, of a hundred {little:.0f} MiB", flush=True)
        if seconds > 11:
            missed.append("10,000 photos")
        subprocess.run([BIN / "stormy", "transfers", "cancel", "all"], env=closed, capture_output=True)

        large = folder / "large.jpg"
        with open(large, "wb") as file:
            file.write(b"\xff\xd8\xff")
            for _ in range(256):
                file.write(os.urandom(8 << 20))
        process = subprocess.Popen([BIN / "stormy", "upload", "--wait", large], env=environment, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        agent = None
        while agent is None:
            status = subprocess.run([BIN / "stormy", "status", "--json"], env=environment, capture_output=True, text=True)
            agent = json.loads(status.stdout)["agent"]["pid"] if status.returncode == 0 else None
        _, status, usage = os.wait4(process.pid, 0)
        print(f"2 GiB: memory of the command {usage.ru_maxrss / 1024:.0f} MiB, of the agent {resident(agent):.0f} MiB (bar 64)", flush=True)
        if max(usage.ru_maxrss / 1024, resident(agent)) > 64 * 1.1:
            missed.append("2 GiB")
    finally:
        subprocess.run([BIN / "stormy", "quit"], env=environment, capture_output=True)
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)
    if missed:
        sys.exit("beyond its bar: " + ", ".join(missed))


main()
