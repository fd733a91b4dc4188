"""Fake servers that are not available as packages: Immich 2 and 3, and a Nextcloud that accepts only file names which Windows accepts.

The fake servers implement what uploads need. The rules come from the published interfaces and from `shared/data/cases` 06 and 11. A request
counts only if its complete body arrived, as with the real servers. Files are stored in a folder, so that a killed server keeps them.

    python3 Tests/Interop/emulations.py immich2|immich3|nextcloud PORT FOLDER
"""
import hashlib
import http.server
import json
import os
import pathlib
import re
import sys
import urllib.parse

KEY = "a key of its own"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    root = pathlib.Path()

    def log_message(self, *_):
        pass

    def body(self):
        """Returns the body of the request, or `None` if the connection ended before the complete body arrived."""
        length = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(length)
        self.close_connection = len(data) < length
        return data if len(data) == length else None

    def answer(self, status, data=b"", kind="application/json", length=None):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def write(self, path, data):
        """Writes a file atomically."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{os.urandom(8).hex()}.writing")
        part.write_bytes(data)
        part.rename(path)


class Immich(Handler):
    version = 3

    def json(self, status, value):
        self.answer(status, json.dumps(value).encode())

    def fail(self, messages):
        """Sends a response with status 400 in the format of this version."""
        if self.version >= 3:
            errors = [{"code": "custom", "path": [], "message": message} for message in messages]
            return self.json(400, {"message": "Validation failed", "errors": errors, "statusCode": 400})
        return self.json(400, {"message": messages, "error": "Bad Request", "statusCode": 400})

    def allowed(self):
        if self.headers.get("x-api-key") == KEY:
            return True
        self.json(401, {"message": "Invalid API key", "statusCode": 401})
        return False

    def do_GET(self):
        path = urllib.parse.urlparse(self.path).path
        with open(self.root.parent / "requests", "a") as log:
            log.write(f"GET {path}\n")
        if path == "/api/server/version":
            return self.json(200, {"major": self.version, "minor": 1, "patch": 0})
        if not self.allowed():
            return None
        found = re.fullmatch(r"/api/assets/([0-9a-f]{40})/original", path)
        if not found or not (self.root / found[1]).exists():
            return self.json(400, {"message": "Not found or no asset.download access", "statusCode": 400})
        return self.answer(200, (self.root / found[1]).read_bytes(), "image/jpeg")

    def do_POST(self):
        data = self.body()
        if data is None or not self.allowed():
            return None
        if self.path == "/api/assets/bulk-upload-check":
            results = [
                {"id": asset["id"], "action": "reject", "reason": "duplicate", "assetId": asset["checksum"], "isTrashed": False}
                if (self.root / asset["checksum"]).exists() else {"id": asset["id"], "action": "accept"}
                for asset in json.loads(data)["assets"]]
            return self.json(200, {"results": results})
        if self.path != "/api/assets":
            return self.json(404, {"message": f"Cannot POST {self.path}", "statusCode": 404})
        fields = form(data, self.headers["Content-Type"])
        device = {"deviceId", "deviceAssetId"}
        known = {"assetData", "fileCreatedAt", "fileModifiedAt", "duration", "filename", "isFavorite", "visibility", "livePhotoVideoId",
                 "metadata", "sidecarData"} | (device if self.version < 3 else set())
        wrong = [f"Unrecognized key: {name}" for name in fields if name not in known] if self.version >= 3 else []
        wrong += [f"{name} should not be empty" for name in sorted(device - set(fields))] if self.version < 3 else []
        wrong += [f"{name} must be an ISO 8601 time with an offset" for name in ("fileCreatedAt", "fileModifiedAt")
                  if not TIME.fullmatch(fields.get(name, b"").decode())]
        if wrong:
            return self.fail(wrong)
        number = hashlib.sha1(fields["assetData"]).hexdigest()
        if (self.root / number).exists():
            return self.json(200, {"id": number, "status": "duplicate"})
        self.write(self.root / number, fields["assetData"])
        return self.json(201, {"id": number, "status": "created"})


def form(data, kind):
    """Returns the fields of a multipart/form-data body."""
    boundary = b"--" + re.search(r'boundary="?([^";]+)', kind)[1].encode()
    fields = {}
    for part in data.split(boundary)[1:-1]:
        head, _, value = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        fields[re.search(rb' name="([^"]*)"', head)[1].decode()] = value.removesuffix(b"\r\n")
    return fields


class Nextcloud(Handler):
    """A fake Nextcloud with chunked uploads, version 2. A response to HEAD has no body and therefore no reason for a forbidden name."""

    def place(self, url):
        return self.root / urllib.parse.unquote(urllib.parse.urlparse(url).path).lstrip("/")

    def refuses(self, url):
        bad = next((character for character in ':?*"<>|' if character in self.place(url).name), None)
        if bad is None:
            return False
        escaped = bad.replace("<", "&lt;")
        self.answer(400, (
            '<?xml version="1.0"?><d:error xmlns:d="DAV:" xmlns:s="http://sabredav.org/ns">'
            "<s:exception>OCA\\DAV\\Connector\\Sabre\\Exception\\InvalidPath</s:exception>"
            f'<s:message>"{escaped}" is not allowed inside a file or folder name.</s:message></d:error>').encode(), "application/xml")
        return True

    def do_HEAD(self):
        place = self.place(self.path)
        if not self.refuses(self.path):
            self.answer(200, length=place.stat().st_size) if place.is_file() else self.answer(404)

    def do_GET(self):
        place = self.place(self.path)
        self.answer(200, place.read_bytes(), "application/octet-stream") if place.is_file() else self.answer(404)

    def do_MKCOL(self):
        place = self.place(self.path)
        if place.is_dir():
            return self.answer(405)
        target = self.headers.get("Destination")
        if target and not self.place(target).parent.is_dir():
            return self.answer(409)
        if not place.parent.is_dir():
            return self.answer(409)
        place.mkdir()
        return self.answer(201)

    def do_PUT(self):
        data = self.body()
        place = self.place(self.path)
        if data is None:
            return
        if not place.parent.is_dir():
            return self.answer(404)
        self.write(place, data)
        with open(self.root.parent / "requests", "a") as log:
            log.write(f"PUT {place.name} {len(data)}\n")
        self.answer(201)

    def do_PROPFIND(self):
        self.body()
        place, base = self.place(self.path), urllib.parse.urlparse(self.path).path.rstrip("/")
        if not place.is_dir():
            return self.answer(404)
        rows = "".join(
            f"<d:response><d:href>{base}/{file.name}</d:href><d:propstat><d:prop><d:getcontentlength>{file.stat().st_size}"
            "</d:getcontentlength></d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>"
            for file in sorted(place.iterdir()) if not file.name.startswith("."))
        self.answer(207, f'<?xml version="1.0"?><d:multistatus xmlns:d="DAV:">{rows}</d:multistatus>'.encode(), "application/xml")

    def do_MOVE(self):
        chunks, target = self.place(self.path).parent, self.headers["Destination"]
        if self.refuses(target):
            return None
        place = self.place(target)
        if not chunks.is_dir():
            return self.answer(404)
        if not place.parent.is_dir():
            return self.answer(409)
        if place.exists():
            return self.answer(412)
        files = sorted(file for file in chunks.iterdir() if not file.name.startswith("."))
        self.write(place, b"".join(file.read_bytes() for file in files))
        self.remove(chunks)
        return self.answer(201)

    def do_DELETE(self):
        place = self.place(self.path)
        if not place.is_dir():
            return self.answer(404)
        self.remove(place)
        return self.answer(204)

    @staticmethod
    def remove(folder):
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


if __name__ == "__main__":
    name, port, folder = sys.argv[1:]
    handler = Nextcloud if name == "nextcloud" else Immich
    handler.root = pathlib.Path(folder)
    if handler is Nextcloud:
        for home in ("files", "uploads"):
            (handler.root / "remote.php/dav" / home / "me").mkdir(parents=True, exist_ok=True)
    if handler is Immich:
        handler.version = int(name.removeprefix("immich"))
    http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), handler).serve_forever()
