"""How long an app's submit waits at most while the agent downloads a large file and proves its SHA-512: nginx on loopback, release builds.

    python3 Tests/Benchmarks/waiting.py [GIB]

Exits 1 when the longest wait is 50 ms or more, or the download did not end well. The file is sparse; the copy that is downloaded is not.
"""
import base64
import hashlib
import json
import pathlib
import subprocess
import sys

from support import BIN, Bench

GIB = float(sys.argv[1]) if len(sys.argv) > 1 else 20
BAR = 0.05


def digest(size):
    found, block = hashlib.sha512(), bytes(1 << 24)
    for _ in range(size >> 24):
        found.update(block)
    found.update(bytes(size & ((1 << 24) - 1)))
    return base64.b64encode(found.digest()).decode()


def main():
    size = int(GIB * (1 << 30))
    bench = Bench(http="sendfile on;", server=f"add_header Repr-Digest 'sha-512=:{digest(size)}:';")
    with open(bench.folder / "www/large", "wb") as large:
        large.truncate(size)
    with bench:
        environment = bench.environment | {"PROVING_LOG": "/dev/null"}
        ground = BIN / "proving-ground"
        run = subprocess.run([ground, "submit-while", f"{bench.url}/large", bench.folder / "copy"], env=environment,
                             check=True, capture_output=True, text=True)
        subprocess.run([ground, "background", "quit"], env=environment, capture_output=True)
        seen = json.loads(run.stdout)
    print(f"{GIB:g} GiB with a SHA-512 in {seen['seconds']:.0f} s: {seen['submits']} submits beside it, median "
          f"{seen['median'] * 1000:.2f} ms, longest {seen['longest'] * 1000:.1f} ms (bar {BAR * 1000:.0f})")
    if seen["end"] != "completed":
        sys.exit(f"the download ended as {seen['end']}")
    if seen["longest"] >= BAR:
        sys.exit("beyond its bar")


main()
