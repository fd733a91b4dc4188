"""Measures how much of 200 MiB of photos is sent again after a cut: tus, resumable uploads and S3 in parts, with real servers.

Every byte goes through a counter between the agent and the server. The counter cuts all connections once, after half of the bytes. Prints
how many bytes were sent in addition to the photos, including headers. Exits with 1 if a photo is missing or differs at the server. Also
exits with 1 if 1 % or more was sent again to a server other than SeaweedFS. SeaweedFS has no such limit, because it keeps only complete
parts of S3 (5 MiB) and complete requests of tus.

    python3 Tests/Interop/resent.py [SERVER...]
"""
import hashlib
import json
import random
import socket
import sys
import threading

import support
from upload_servers import SERVERS, Server, configuration, prepare

COUNT, SIZE = 10, 20 << 20
# The send rate of each photo in kilobits per second. Without a limit, buffers would hold megabytes that the server has not yet
# read.
LIMIT = 40_000
BAR = 1.0


class Counter:
    """A proxy that counts the bytes to the server and cuts all connections once."""

    def __init__(self, port, cut_at):
        self.target, self.cut_at, self.sent, self.is_cut = port, cut_at, 0, False
        self.lock, self.open = threading.Lock(), []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.target))
            with self.lock:
                self.open += [client, server]
            threading.Thread(target=self.carry, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self.carry, args=(server, client, False), daemon=True).start()

    def carry(self, source, target, counts):
        try:
            while data := source.recv(1 << 16):
                if counts:
                    with self.lock:
                        self.sent += len(data)
                        if self.sent >= self.cut_at and not self.is_cut:
                            self.is_cut = True
                            for end in self.open:
                                end.shutdown(socket.SHUT_RDWR)
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def run(name, _, folder):
    kind, path, _ = SERVERS[name]
    server = Server(name, folder / "server")
    counter = Counter(server.port, COUNT * SIZE // 2)
    server.public_port = counter.port
    server.start()
    home = support.Home(
        folder / "home", configuration(kind, f"http://127.0.0.1:{counter.port}{path}", folder, f"limit_kbps = {LIMIT}\n"))
    camera = folder / "camera"
    camera.mkdir()
    photos = set()
    for number in range(COUNT):
        data = b"\xff\xd8\xff" + random.Random(number).randbytes(SIZE - 3)
        (camera / f"p{number}.jpg").write_bytes(data)
        photos.add(hashlib.sha256(data).hexdigest())
    try:
        ended = home.stormy("upload", "--wait", *sorted(camera.iterdir()), check=False)
        rows = home.rows()
        found = set(server.holds(rows))
    finally:
        home.stormy("quit", check=False)
        server.stop()
    again = (counter.sent - COUNT * SIZE) / (COUNT * SIZE) * 100
    held = photos <= found and ended.returncode == 0 and counter.is_cut
    return support.tell(
        held and (again < BAR or name.startswith("seaweedfs")),
        f"{name:14} {'held' if held else 'NOT HELD':9} {again:5.2f} % more than the photos"
        + ("" if held else f": {ended.stderr} {json.dumps([row['error'] for row in rows])}"))


support.play(
    sys.argv[1:] or support.RESENT_SERVERS, ("cut",), prepare, run,
    held="held: what was there was not sent again", broken="a photo is not there, or was sent again")
