"""Measures the longest submit of an app while the agent downloads a large file and checks its SHA-512.

    python3 Tests/Laboratory/Benchmarks/waiting.py [GIB]

Uses nginx on loopback and release builds. Runs twice: at 125 MB/s (a gigabit line), and as fast as possible. In the same run,
durable writes of 8 KiB to the same disk are measured for comparison. The longest submit has to stay under 50 ms, or under three
times the longest durable write if the disk is slower. The three writes are the commit of the submit, a commit of the agent before
it, and other work in the queue of the disk. Exits with 1 if a submit takes longer, or if a download fails. The file is sparse, but
the downloaded copy is not.
"""
import base64
import hashlib
import json
import subprocess
import sys

from support import BIN, Bench

GIB = float(sys.argv[1]) if len(sys.argv) > 1 else 20
BAR = 0.05
RATIO = 3


def digest(size):
    found, block = hashlib.sha512(), bytes(1 << 24)
    for _ in range(size >> 24):
        found.update(block)
    found.update(bytes(size & ((1 << 24) - 1)))
    return base64.b64encode(found.digest()).decode()


def measure(size, proof, rate):
    bench = Bench(http="sendfile on;", server=f"add_header Repr-Digest 'sha-512=:{proof}:'; limit_rate {rate};")
    with open(bench.folder / "www/large", "wb") as large:
        large.truncate(size)
    with bench:
        environment = bench.environment | {"PROVING_LOG": "/dev/null"}
        ground = BIN / "proving-ground"
        run = subprocess.run([ground, "submit-while", f"{bench.url}/large", bench.folder / "copy"], env=environment,
                             check=True, capture_output=True, text=True)
        subprocess.run([ground, "background", "quit"], env=environment, capture_output=True)
        return json.loads(run.stdout)


def main():
    size, misses = int(GIB * (1 << 30)), []
    proof = digest(size)
    for name, rate in (("at 125 MB/s", "125m"), ("unlimited", "0")):
        seen = measure(size, proof, rate)
        ratio = seen["longest"] / seen["diskLongest"]
        print(f"{GIB:g} GiB with a SHA-512 {name} in {seen['seconds']:.0f} s: {seen['submits']} submits beside it, median "
              f"{seen['median'] * 1000:.2f} ms, longest {seen['longest'] * 1000:.1f} ms; a bare durable write: median "
              f"{seen['diskMedian'] * 1000:.2f} ms, longest {seen['diskLongest'] * 1000:.1f} ms, ratio {ratio:.1f}", flush=True)
        if seen["end"] != "completed":
            misses.append(f"{name}: the download ended as {seen['end']}")
        if seen["longest"] >= max(BAR, RATIO * seen["diskLongest"]):
            misses.append(f"{name}: {ratio:.1f} times the disk's own, bar {RATIO}")
    if misses:
        sys.exit("\n".join(misses))


main()
