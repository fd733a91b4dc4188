"""Compares uploads of photos with curl and rclone: nginx on loopback, release builds, medians of paired runs on the same machine.

    python3 Tests/Laboratory/Benchmarks/uploads.py [RUNS]

Prints each median with its limit. Exits with 1 if a limit is exceeded.
"""
import os
import random
import statistics
import subprocess
import sys
import time

from support import BIN, Bench, memory, timed

RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 5


def photo(seed, size):
    """Returns a JPEG of about this size without a location. Most bytes are coded pixels without the byte 0xFF, as in photos."""
    pixels = random.Random(seed).randbytes(size - len(BASE)).replace(b"\xff", b"\xfe")
    return BASE[:-2] + pixels + BASE[-2:]


def queue(environment, photos):
    """Returns the seconds and the maximum memory of the command."""
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
    # rclone requests properties (PROPFIND), so the server needs this method.
    dav = "dav_methods PUT DELETE MKCOL COPY MOVE; dav_ext_methods PROPFIND OPTIONS; create_full_put_path on;"
    bench = Bench(http="client_max_body_size 0;", server=dav, modules=["ngx_http_dav_ext_module"])
    with bench:
        missed = measure(bench)
    sys.exit("beyond its bar: " + ", ".join(missed) if missed else 0)


def measure(bench):
    """Returns the names of the limits that were exceeded."""
    folder = bench.folder
    (folder / "config/stormy").mkdir(parents=True)
    configuration = folder / "config/stormy/config.toml"
    configuration.write_text("".join(
        f'[upload.destinations.{kind}]\nkind = "{kind}"\nurl = "{bench.url}/{kind}/"\n' for kind in ("put", "webdav")))
    configuration.chmod(0o600)
    global BASE
    subprocess.run(["convert", "-size", "64x48", "plasma:", folder / "base.jpg"], check=True)
    BASE = (folder / "base.jpg").read_bytes()
    return many(bench) + five_hundred(bench) + large(bench)


def camera(folder, count, size, seed):
    folder.mkdir()
    photos = [folder / f"{folder.name}-{number}.jpg" for number in range(count)]
    for number, file in enumerate(photos):
        file.write_bytes(photo(seed + number, size))
    return photos


def many(bench):
    photos = camera(bench.folder / "many", 10_000, 20_000, 10_000_000)
    # No agent cleans up this separate state. If many files are deleted, ext4 without a journal creates files slowly for a minute.
    # For this reason, the script deletes nothing before the end.
    closed = bench.environment | {"STORMY_NO_AGENT": "1"} | {
        name: str(bench.folder / "closed" / name) for name in ("XDG_STATE_HOME", "XDG_DATA_HOME")}
    _, little = queue(closed, photos[:100])
    seconds, most = queue(closed, photos[100:])
    print(f"10,000 photos of 20 kB queued: {seconds:.1f} s (bar 6); memory {most:.0f} MiB, of a hundred {little:.0f} MiB", flush=True)
    return ["10,000 photos"] if seconds > 6 else []


def five_hundred(bench):
    """Compares the upload with a program that only sends, and with a program that also compares the stored files."""
    def sent(kind, photos):
        return timed([BIN / "stormy", "upload", "--wait", "--to", kind, *photos], env=bench.environment)

    def curl(photos):
        places = [part for file in photos for part in ("-T", str(file), f"{bench.url}/curl/{file.name}")]
        return timed(["curl", "-s", "--parallel", *places])

    def rclone(photos):
        return timed(["rclone", "--config", "", "--webdav-url", bench.url, "copy", photos[0].parent, f":webdav:rclone/{photos[0].parent.name}"])

    missed = []
    for kind, other, name, bar in (("put", curl, "curl --parallel -T", 8), ("webdav", rclone, "rclone copy", 0.35)):
        ours, theirs = [], []
        for run in range(RUNS):
            photos = camera(bench.folder / f"{kind}{run}", 500, 200_000, run * 1000)
            ours.append(sent(kind, photos))
            theirs.append(other(photos))
        ratio = statistics.median(mine / its for mine, its in zip(ours, theirs))
        print(f"500 photos of 200 kB by {kind}, copied, cleaned, hashed, queued, sent and asked about: median {statistics.median(ours):.2f} s; "
              f"{name}: {statistics.median(theirs):.2f} s; median ratio {ratio:.2f} (bar {bar})", flush=True)
        if ratio > bar:
            missed.append(f"500 photos beside {name}")
    return missed


def large(bench):
    file = bench.folder / "large.jpg"
    with open(file, "wb") as content:
        content.write(b"\xff\xd8\xff")
        for _ in range(256):
            content.write(os.urandom(8 << 20))
    process = subprocess.Popen([BIN / "stormy", "upload", "--wait", "--to", "put", file], env=bench.environment, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    agent = None
    while agent is None:
        if process.poll() is not None:
            return ["2 GiB: not sent"]
        agent = bench.agent()
    _, _, usage = os.wait4(process.pid, 0)
    command, most = usage.ru_maxrss / 1024, memory(agent, "VmHWM")
    print(f"2 GiB: memory of the command {command:.0f} MiB, of the agent {most:.0f} MiB (bar 64)", flush=True)
    return ["2 GiB"] if max(command, most) > 64 * 1.1 else []


main()
