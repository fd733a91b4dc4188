"""Uploads photos to real servers: without a fault, with a kill -9 of the agent half-way, and with a restart of the server half-way.

Servers from Debian: nginx and Apache (WebDAV and plain PUT), lighttpd (WebDAV) and Sabre/DAV. Servers from PyPI: WsgiDAV, rclone, copyparty
(WebDAV), SeaweedFS (WebDAV, tus, S3), moto (S3), tuspyserver (tus) and uploadserver (forms). The script also builds Apple's server for
resumable uploads. Immich 2 and 3, and a Nextcloud that forbids characters in names, are fake servers (emulations.py). One of the Sabre/DAV
servers also forbids characters in names. One of the moto servers ignores If-None-Match.

Prints one line for each server and case. The line shows whether each photo is stored exactly once with an equal SHA-256, and how much of the
large photo was sent again. Exits with 1 if a photo is missing, stored twice or different.

    python3 Tests/Interop/uploads.py [SERVER...]
"""
import hashlib
import json
import os
import pathlib
import random
import signal
import sys

import support
from upload_servers import FORBIDDING, IGNORING, SERVERS, Server, configuration, prepare

SIZE = 24_000_000
# The send rate in kilobits per second. At this rate, the large photo takes two seconds.
LIMIT = 96_000

def run(name, case, folder):
    kind, path, _ = SERVERS[name]
    server = Server(name, folder / "server")
    url = f"http://127.0.0.1:{server.port}{path}"
    limit = "" if case == "whole" else f"limit_kbps = {LIMIT}\n"
    home = support.Home(folder / "home", configuration(kind, url, folder, limit))
    camera = folder / "camera"
    camera.mkdir()
    photos = {}
    for number, size in enumerate((SIZE, 300_000, 300_001)):
        data = b"\xff\xd8\xff" + random.Random(number).randbytes(size)
        (camera / f"noon 12:0{number} \u00fc.jpg").write_bytes(data)
        photos[hashlib.sha256(data).hexdigest()] = 1
    folder.chmod(0o755)
    for place in (server.folder, server.files):
        place.chmod(0o777)
    server.start()
    try:
        queued = home.stormy("upload", *sorted(camera.iterdir()), "--json")
        number = json.loads(queued.stdout)[0]["id"]
        if case != "whole":
            home.wait(number, lambda row: row["bytesDone"] > SIZE * 0.5)
            if case == "agent killed":
                os.kill(home.agent(), signal.SIGKILL)
            else:
                server.stop()
                server.start()
        for row in home.rows():
            home.wait(row["id"], lambda row: row["state"] in ("completed", "failed"))
        rows = home.rows()
        trouble = next((row["error"]["message"] for row in rows if row["error"]), None)
        found = server.holds(rows) if trouble is None else {}
        verified = verify(home, name) if trouble is None and case == "whole" else ""
    finally:
        home.stormy("quit", check=False)
        server.stop()
    ours = {key: count for key, count in found.items() if key in photos}
    held = ours == photos and all(row["sha256"] in photos for row in rows) and not verified
    # If the server required another name, the row of the photo reports the changed name. No other row has such a note.
    remarked = [row["note"] for row in rows if "does not allow" in (row["note"] or "")]
    held = held and len(remarked) == (len(rows) if name in FORBIDDING else 0)
    remarked = [row["note"] for row in rows if "If-None-Match" in (row["note"] or "")]
    held = held and len(remarked) == (len(rows) if name == IGNORING else 0)
    again = max(0, next(row for row in rows if row["id"] == number)["bytesOnWire"] - SIZE)
    proof = ", ".join(sorted({(row["receipt"] or {}).get("verified", "none") for row in rows}))
    line = (f"{name:14} {case:17} {'held' if held else 'NOT HELD':9} {again / SIZE * 100:3.0f} % sent again; known by: {proof}"
            + (f"; {trouble}" if trouble else "") + verified)
    if not held:
        files = [f"{path.name} {path.stat().st_size}" for path in server.files.rglob("*") if path.is_file()]
        notes = [row["note"] for row in rows]
        line += f"; there: {sorted(found.items())}; sent: {sorted(photos)}; files: {', '.join(files)}; notes: {notes}"
    return support.tell(held, line)


def verify(home, name):
    """Returns the failure of `upload --verify`, which reads stored photos back if the protocol supports this."""
    looked = home.stormy("upload", "--verify", check=False)
    asks = SERVERS[name][0] in ("immich", "nextcloud", "s3") or name.startswith("sabre")
    return f"; --verify: {looked.stdout}{looked.stderr}" if asks and looked.returncode else ""


def play(name, case, folder):
    # After a kill, the server tuspyserver has lost the offset of an upload. The server reports 0, and appends to the bytes that
    # its file already has.
    reasons = {"tuspyserver": "this server spoils its own files when it is killed",
               "moto": "this server keeps everything in its memory", IGNORING: "this server keeps everything in its memory", "nio": "this server keeps what it began in its memory"}
    if case == "server restarted" and name in reasons:
        print(f"{name:14} {case:17} not tried: {reasons[name]}", flush=True)
        return True
    return run(name, case, folder)


support.play(
    sys.argv[1:] or list(SERVERS), ("whole", "agent killed", "server restarted"),
    prepare, play,
    held="held: every photo is there, once, as it was sent", broken="a photo is missing, there twice, or not what was sent")
