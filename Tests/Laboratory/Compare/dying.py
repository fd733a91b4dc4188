"""Behaviours of failures, ended processes and limits."""
import signal
import time

from behaviours import Behaviour
from contenders import No, until
from desk import Refusing
from times import exactly, soon

DYING, LIMITS = "Failures and crashes", "Limits"


def fetch(c, url, options="", body=None):
    """Begins a download as soon as the contender can."""
    body = body or f"curl -fsS {options} -o {c.ground.folder}/file {url} || exit $?"
    if c.name == "systemd":
        c.once(time.time() + 1, body)
    elif c.name == "cron":
        c.every_minute(body, prefix=f"flock -n -o {c.ground.folder}/lock ")
    elif c.name == "stormy":
        c.stormy("download", url, "-o", c.ground.folder / "file")
    else:
        c.once(time.time(), body)


def has(c, content):
    path = c.ground.folder / "file"
    return path.exists() and path.read_bytes() == content


retry = Behaviour("retry", DYING, "After two responses 503 the request is repeated without a command")


@retry.rest
def _(c):
    server = Refusing(2)
    c.start()
    fetch(c, server.url, "--retry 5")
    until(lambda: has(c, b"the file\n"), 60, f"after {len(server.times)} requests it was not there")
    server.close()
    pauses = [f"{later - earlier:.1f}" for earlier, later in zip(server.times, server.times[1:])]
    return f"pauses of {' and '.join(pauses)} s"


later = Behaviour("retry-later", DYING, "After a power cut while a retry waits, the work is tried again",
                  {"systemd": "timer.triggered", "nohup": "nohup", "workmanager": "wm.transient"})


@later.rest
def _(c):
    server = Refusing(1_000)
    c.start()
    if c.name == "cron":
        c.ground.worker(f"curl -fsS --retry 9 -o {c.ground.folder}/file {server.url}", "job")
        c.anacron()
    else:
        fetch(c, server.url, "--retry 9")
    until(lambda: server.times, 15, "no request")
    time.sleep(0.5)
    c.power_cut()
    server.left = 0
    c.start()
    if c.name == "cron":
        c.anacron()
    until(lambda: has(c, b"the file\n"), 30, "the work was not tried again within 30 s after the restart of the machine")
    server.close()
    return "it came after the start"


killed = Behaviour("worker-killed", DYING, "After `kill -9` of the worker, the work starts again",
                   {"cron": "cron.minute", "workmanager": "wm.backoff"})


@killed.rest
def _(c):
    c.start_endless()
    at, due = soon(c, 3)
    c.once(at, body="long")
    c.wait_count(seconds=due - time.time() + c.patience)
    c.kill_worker()
    begun = time.time()
    c.wait_count(2, 20, "the work did not begin again within 20 s")
    return f"{time.time() - begun:.1f} s later"


scheduler = Behaviour("scheduler-killed", DYING, "After `kill -9` of the scheduler before the due moment, the work runs", {"nohup": "nohup"})


@scheduler.rest
def _(c):
    c.start()
    at, due = soon(c, 5)
    c.daily(at)
    c.settle()
    c.kill_scheduler()
    c.wait_count(seconds=due - time.time() + max(c.patience, 12))
    exactly(c, 1)
    return "it ran, once"


cut = Behaviour("cut", DYING, "After a power cut during the work, the work starts again", {"systemd": "timer.triggered", "nohup": "nohup"})


@cut.rest
def _(c):
    c.start_endless()
    if c.name == "cron":
        c.ground.worker("long", "job")
        c.anacron()
    elif c.name in ("stormy", "nohup"):
        c.once(time.time() + 1, body="long")
    else:
        c.daily(int(time.time()) + 2, body="long")
    c.wait_count()
    time.sleep(0.5)
    c.power_cut()
    c.start()
    if c.name == "cron":
        c.anacron()
    c.wait_count(2, max(c.patience, 20), "the work did not begin again within 20 s after the restart of the machine")
    return "it began again"


overlap = Behaviour("overlap", LIMITS, "Work that is due again while it runs is not started a second time")


@overlap.rest
def _(c):
    c.start_endless()
    if c.name == "systemd":
        at = int(time.time()) + 2
        c.write("".join(f"OnCalendar=*-*-* {time.strftime('%H:%M:%S', time.gmtime(at + more))}\n" for more in (0, 2)), c.ground.worker("slow"))
    elif c.name == "cron":
        c.every_minute("slow", prefix=f"flock -n -o {c.ground.folder}/lock ")
    elif c.name == "nohup":
        c.loop(f"while sleep 1; do {c.ground.worker('slow')}; done")
    elif c.name == "workmanager":
        c.periodic(1, frequency=2, body="slow")
    else:
        c.once(time.time())
    c.wait_count()
    if c.name == "stormy":
        time.sleep(1)
        c.once(time.time())
    time.sleep(5)
    if c.count() != 1 or len(c.workers()) != 1:
        raise No(f"{c.count()} began, {len(c.workers())} at a time")
    return "one at a time"


def limited(c, body):
    """Begins work with a limit of two seconds, or of thirty seconds for a refresh of Stormy."""
    if c.name == "systemd":
        c.once(time.time() + 1, body, service="TimeoutStartSec=2\nTimeoutStopSec=2\n")
    elif c.name == "cron":
        c.every_minute(body, prefix=f"flock -n -o {c.ground.folder}/lock timeout -k 2 2 ")
    elif c.name == "nohup":
        worker = c.ground.worker(body)
        c.loop(f"timeout -k 2 2 {worker}")
    else:
        c.once(time.time(), body)
    c.wait_count()
    return 45 if c.name == "stormy" else 9


limit = Behaviour("limit", LIMITS, "Work that ignores its time limit is ended", {"workmanager": "service.oneshot"})


@limit.rest
def _(c):
    c.start_endless()
    seconds = limited(c, "deaf")
    until(c.workers, 3, "it does not run")
    first = c.workers()
    if c.name == "stormy":
        c.ground.signal(signal.SIGSTOP, first)
    begun = time.time()
    until(lambda: not set(first) & c.ground.members(), seconds, f"the work was not ended within {seconds} s")
    return f"it was killed after {time.time() - begun:.0f} s"


warned = Behaviour("warned", LIMITS, "Before work is ended, the work is warned and has time to clean up", {"workmanager": "service.oneshot"})


@warned.rest
def _(c):
    c.start_endless()
    seconds = limited(c, "long")
    until(c.warned, seconds, f"the work received no warning signal within {seconds} s")
    until(lambda: not c.workers() or c.name == "cron", 6, "it did not end")
    return "it heard of it, and ended by itself"
