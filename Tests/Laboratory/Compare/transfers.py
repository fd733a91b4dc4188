"""Behaviours of transfers. The other contenders use curl with options to resume, and restart it as they restart their work."""
import os
import signal
import time

from behaviours import Behaviour
from contenders import BINARIES, No, until
from desk import Files
from dying import fetch, has

GROUP = "Transfers"
SIZE = 3_000_000


def half_way(c, content, options="-C -"):
    """Begins a download of four seconds, and kills its process after more than a third has arrived."""
    server = Files(c.ground, rate=SIZE // 4)
    (server.files / "file").write_bytes(content)
    c.start()
    target = c.ground.folder / "file"
    if c.name == "workmanager":
        # A one-off task is not retried, but a periodic task runs again.
        c.periodic(1, frequency=2, body=f"[ -e {target}.done ] || curl -fsS {options} -o {target} {server.url}/file && touch {target}.done")
    else:
        fetch(c, f"{server.url}/file", options)
    until(lambda: arrived(c) > SIZE // 3, 75, "it did not begin")
    return server


def arrived(c):
    """Returns the number of bytes on the disk. An incomplete file of Stormy does not have its final name."""
    if c.name == "stormy":
        return max((row["bytesDone"] for row in c.asked("transfers")), default=0)
    path = c.ground.folder / "file"
    return path.stat().st_size if path.exists() else 0


def kill_fetcher(c):
    names = ["/background-agent"] if c.name == "stormy" else ["/curl"]
    found = [process for name in names for process in c.ground.find(name)]
    if not found:
        raise RuntimeError("nobody fetches")
    c.ground.signal(signal.SIGKILL, found)


resumes = Behaviour("resumes", GROUP, "After `kill -9` in the middle of a download, the download continues without fetching bytes twice")


@resumes.rest
def _(c):
    content = os.urandom(SIZE)
    server = half_way(c, content)
    kill_fetcher(c)
    until(lambda: has(c, content), 90, "90 s later it was not whole")
    time.sleep(0.5)
    sent = sum(size for status, size in server.requests("GET") if status in (200, 206))
    if sent > SIZE * 1.3:
        raise No(f"the server sent {sent / SIZE:.2f} times the file")
    return f"the server sent {sent / SIZE:.2f} times the file"


changed = Behaviour("changed", GROUP, "If the file on the server changes during an interruption, the result is one complete version",
                    {name: "curl.continue" for name in ("systemd", "cron", "nohup", "workmanager")})


@changed.rest
def _(c):
    old, new = os.urandom(SIZE), os.urandom(SIZE + 1000)
    server = half_way(c, old)
    (server.files / "next").write_bytes(new)
    (server.files / "next").rename(server.files / "file")
    kill_fetcher(c)
    target = c.ground.folder / "file"
    until(lambda: target.exists() and target.stat().st_size >= SIZE + 1000 and not c.ground.find("/curl"), 90, "90 s later it was not whole")
    time.sleep(0.3)
    if target.read_bytes() != new:
        mixed = target.read_bytes()[:1000] == old[:1000]
        raise No("the downloaded file consists of the beginning of the old file and the end of the new file" if mixed else "neither file")
    return "it began anew, and is the new file"


whole = Behaviour("whole", GROUP, "A half-downloaded file never has the name of the complete file",
                  {name: "curl.output" for name in ("systemd", "cron", "nohup", "workmanager")})


@whole.rest
def _(c):
    half_way(c, os.urandom(SIZE))
    c.power_cut()
    path = c.ground.folder / "file"
    if path.exists():
        raise No(f"after a power cut, an incomplete file ({100 * path.stat().st_size // SIZE} % of the bytes) already had the final name")
    return "after a power cut nothing stands there"


outlives = Behaviour("outlives", GROUP, "A download continues when the program that requested it is killed", none={"cron": "cron.minute"})


@outlives.rest
def _(c):
    content = os.urandom(SIZE)
    server = Files(c.ground, rate=SIZE // 3)
    (server.files / "file").write_bytes(content)
    c.start()
    target = c.ground.folder / "file"
    curl = f"curl -fsS -o {target} {server.url}/file"
    if c.name == "stormy":
        words = f"{BINARIES}/stormy download {server.url}/file -o {target} --wait"
    elif c.name == "nohup":
        words = f"nohup {curl} & sleep 60"
    else:
        words = f"systemd-run --user --collect --no-block --unit=workmanager-5d1c21d0 {curl}; sleep 60"
    asking = c.ground.start(["sh", "-c", words])
    until(lambda: arrived(c) > 0 or c.ground.find("/curl"), 10, "it did not begin")
    time.sleep(1)
    os.kill(asking.pid, signal.SIGKILL)
    # The terminal is also closed, and the processes in its foreground receive a hangup signal.
    c.ground.signal(signal.SIGHUP, [-asking.pid])
    until(lambda: has(c, content), 20, "20 s later it was not whole")
    return "it became whole"


upload = Behaviour("upload", GROUP, "A photo that arrived before a crash is not sent again",
                   {name: "curl.upload" for name in ("systemd", "cron", "nohup", "workmanager")})


@upload.of("stormy")
def _(c):
    server = Files(c.ground)
    (server.files / "photos").mkdir()
    c.configure(f"[upload.destinations.home]\nkind = \"put\"\nurl = \"{server.url}/photos/\"\n")
    photo = picture(c)
    c.ground.start_bus()
    c.ground.environment["STORMY_NO_AGENT"] = "1"
    c.stormy("upload", photo)
    # The first request checks the name. The second response therefore belongs to the photo.
    agent = c.ground.start([BINARIES / "background-agent", "--app", "stormy"], BACKGROUND_CRASH_AT="agent.transferEnded:2")
    agent.wait(20)
    until(lambda: sent(server), 5, "the agent ended before it was sent")
    del c.ground.environment["STORMY_NO_AGENT"]
    c.start()
    c.stormy("status")
    until(lambda: c.asked("transfers")[0]["state"] == "completed", 30, f"it is {c.asked('transfers')[0]['state']}")
    if sent(server) != 1:
        raise No(f"the photo was sent {sent(server)} times")
    return "the next agent asked the server, and found it there"


def sent(server):
    return len([status for status, _ in server.requests("PUT") if status < 300])


def picture(c):
    photo = c.ground.folder / "photo.jpg"
    c.ground.run("convert", "-size", "400x300", "plasma:", photo, check=True)
    return photo


@upload.rest
def _(c):
    server = Files(c.ground)
    (server.files / "photos").mkdir()
    photo = picture(c)
    done = c.ground.folder / "done"
    c.start()
    body = f"[ -e {done} ] || {{ curl -fsS -T {photo} {server.url}/photos/photo.jpg; sleep 2; touch {done}; }}"
    if c.name == "workmanager":
        c.periodic(1, frequency=2, body=body)
    elif c.name == "cron":
        c.every_minute(body, prefix=f"flock -n -o {c.ground.folder}/lock ")
    else:
        c.once(time.time() + 1, body)
    until(lambda: sent(server), 75, "it was not sent")
    if not c.workers():
        raise RuntimeError("the worker was too quick")
    c.kill_worker()
    until(lambda: done.exists(), 75, "75 s later it was not noted")
    if sent(server) != 1:
        raise No(f"the photo was sent {sent(server)} times")
    return "it was sent once"
