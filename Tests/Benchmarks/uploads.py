"""Photos beside curl, on the same machine in the same run: nginx on loopback, release builds, medians of paired runs.

    python3 Tests/Benchmarks/uploads.py [RUNS]

Prints what was seen beside each bar. Exits 1 if a bar is missed.
"""
import os
import random
import shutil
import statistics
import subprocess
import sys
import time

from support import BIN, Bench, memory, timed

RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 5


def photo(seed, size):
    """Bytes of a JPEG that says nothing of a place, of about this size."""
    comment = random.Random(seed).randbytes(size)
    pieces = [comment[start:start + 65_000] for start in range(0, len(comment), 65_000)]
    body = b"".join(b"\xff\xfe" + (len(piece) + 2).to_bytes(2, "big") + piece for piece in pieces)
    return b"\xff\xd8" + body + BASE[2:]


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
    bench = Bench(http="client_max_body_size 0;", server="dav_methods PUT DELETE MKCOL COPY MOVE; create_full_put_path on;")
    with bench:
        sys.exit(measure(bench, bench.folder, bench.environment, bench.url))


def measure(bench, folder, environment, url):
    (folder / "config/stormy").mkdir(parents=True)
    configuration = folder / "config/stormy/config.toml"
    configuration.write_text(f'[upload.destinations.put]\nkind = "put"\nurl = "{url}/photos/"\n')
    configuration.chmod(0o600)
    global BASE
    subprocess.run(["convert", "-size", "64x48", "plasma:", folder / "base.jpg"], check=True)
    BASE = (folder / "base.jpg").read_bytes()
    missed = []
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
        agent = bench.agent()
    _, status, usage = os.wait4(process.pid, 0)
    print(f"2 GiB: memory of the command {usage.ru_maxrss / 1024:.0f} MiB, of the agent {memory(agent, 'VmHWM'):.0f} MiB (bar 64)", flush=True)
    if max(usage.ru_maxrss / 1024, memory(agent, 'VmHWM')) > 64 * 1.1:
        missed.append("2 GiB")
    if missed:
        return "beyond its bar: " + ", ".join(missed)
    return 0


main()
