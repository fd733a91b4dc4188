"""How long an app's submit waits at most while the agent downloads a large file and proves its SHA-512: nginx on loopback, release builds.

    python3 Tests/Laboratory/Benchmarks/waiting.py [GIB]

Twice: at 125 MB/s (a gigabit line), and as fast as the machine can. Beside it, in the same run, what a bare durable write of 8 KiB
takes on the same disk. The longest submit has to stay under 50 ms or, where the disk makes everybody wait longer, under three
times the longest bare write: its own commit, one of the agent's before it, and what queues between them. Exits 1 when it takes longer,
or a download did not end well. The file is sparse; the copy that is downloaded is not.
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
