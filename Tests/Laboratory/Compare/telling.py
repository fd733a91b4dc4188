"""Behaviours of status, tests and the end of work."""
import re
import time

from behaviours import Behaviour
from contenders import DAY, No, clock, until
from desk import Refusing, System
from times import soon

TELLING, TRIED = "Reports", "Manual runs and the end"

following = Behaviour("next", TELLING, "You can ask when the next run is", none={"cron": "crontab.list", "nohup": "nohup"})


@following.of("systemd", "workmanager")
def _(c):
    c.start()
    at = time.time() + DAY / 2
    c.daily(at)
    line = c.ground.systemctl("list-timers", f"{c.unit}.timer").stdout.splitlines()[1]
    if line.startswith("-"):
        raise No(f"list-timers says \"{line.split()[0]}\"")
    if c.name == "systemd" and clock(at) not in line:
        raise No(f"list-timers says {line}")
    return f"list-timers says {' '.join(line.split()[:3])}"


@following.of("stormy")
def _(c):
    c.start()
    at = time.time() + DAY / 2
    c.daily(at)
    found = c.asked("status")["schedule"]["next"]
    if clock(at) not in found:
        raise No(f"status says {found}")
    return f"status says {found}"


why = Behaviour("why", TELLING, "You can ask which condition a run waits for",
                none={"cron": "cron.fields", "nohup": "nohup", "workmanager": "wm.constraints"})


@why.of("systemd")
def _(c):
    c.start()
    at, _ = soon(c, 2)
    folder = c.ground.folder / "config/systemd/user/job.service.d"
    folder.mkdir(parents=True)
    # This condition replaces ConditionACPower=, because ConditionACPower= reads /sys.
    (folder / "condition.conf").write_text("[Unit]\nConditionPathExists=/is-on-power\n")
    c.once(at)
    time.sleep(4)
    said = c.ground.systemctl("status", "job.service").stdout
    found = re.search(r"ConditionPathExists=\S+ was not met", said)
    if not found:
        raise No("status says nothing of it")
    return f"status says \"{found.group(0)}\""


@why.of("stormy")
def _(c):
    system = System(c.ground)
    c.start()
    system.set("power", False)
    c.app("cycle", "0")
    c.app("work", "work.none", "power")

    def unmet():
        rows = c.asked("why", app=True) or [{"conditions": []}]
        return [condition["detail"] for condition in rows[0]["conditions"] if condition["name"] == "externalPower" and not condition["met"]]
    return f"why says \"{until(unmet, 10, 'why says nothing of it')[0]}\""


def journal(c, *words):
    """Returns output of journalctl. The units of the user root are in the system's journal, where --user-unit finds them."""
    return c.ground.run("journalctl", "--no-pager", "-o", "short-iso", *words).stdout


failed = Behaviour("failure", TELLING, "You can ask how failed work ended")


def run_failing(c):
    c.ground.start_journal()
    c.start()
    if c.name == "systemd":
        c.once(time.time() + 2, "failing", service="")
    elif c.name == "cron":
        c.every_minute("failing")
    elif c.name == "nohup":
        c.loop(f"{c.ground.worker('failing')}")
    else:
        c.once(time.time(), "failing")
    c.wait_count()


@failed.of("stormy")
def _(c):
    server = Refusing(0)
    c.start()
    c.stormy("download", server.url, "-o", c.ground.folder / "file", "--sha256", "0" * 64)
    row = until(lambda: [row for row in c.asked("transfers") if row["state"] == "failed"], 20, "it does not say that it failed")[0]
    server.close()
    return f"transfers says \"{row['error']['message'][:60]}…\""


@failed.rest
def _(c):
    run_failing(c)

    def said():
        if c.name == "nohup":
            return "the server said no" in (c.ground.folder / "nohup.out").read_text() and "nohup.out has what it printed"
        text = journal(c) if c.name == "cron" else journal(c, "--user-unit", "job.service" if c.name == "systemd" else "workmanager-*")
        found = re.search(r"exit status 3|status=3\S*", text)
        return found and f"the journal says \"{found.group(0)}\""
    return until(said, 8, "nothing says how it ended")


history = Behaviour("history", TELLING, "After a power cut you can ask for every earlier run, its time and its end", {"nohup": "nohup.output"})


@history.of("stormy")
def _(c):
    c.start()
    c.daily(time.time() + DAY / 2)
    c.stormy("simulate", "launch", "StormyNoon", "--wait", check=False)
    c.power_cut()
    c.start()
    rows = c.asked("history")
    if not rows or not rows[0]["outcome"] or not rows[0]["startedAt"]:
        raise No(f"history says {rows}")
    return f"history says \"{rows[0]['outcome']}\" and {rows[0]['startedAt']}"


@history.rest
def _(c):
    run_failing(c)
    time.sleep(1)
    c.power_cut()
    c.ground.start_journal()
    if c.name == "nohup":
        text = (c.ground.folder / "nohup.out").read_text()
        if not re.search(r"\d\d:\d\d", text):
            raise No("the file nohup.out contains the output, but not the time of each line")
        return "nohup.out has it"
    text = journal(c) if c.name == "cron" else journal(c, "--user-unit", "job.service" if c.name == "systemd" else "workmanager-*")
    found = re.search(r"(\S+T\S+) .*(exit status 3|status=3)", text)
    if not found:
        raise No("the journal does not have it")
    return f"the journal has {found.group(1)}, \"{found.group(2)}\""


now = Behaviour("now", TRIED, "You can run work that is due tomorrow at once, in the same way as the planned run", none={"nohup": "nohup"})


@now.of("cron")
def _(c):
    c.ground.worker(name="job")
    c.anacron().wait(20)
    c.anacron(force=True).wait(20)
    if c.count() != 2:
        raise No(f"it ran {c.count()} times")
    return "anacron -f -n ran it"


@now.of("stormy")
def _(c):
    c.start()
    c.daily(time.time() + DAY / 2)
    c.stormy("simulate", "launch", "StormyNoon", "--wait", check=False)
    c.wait_count()
    return "stormy simulate launch ran it"


@now.rest
def _(c):
    c.start()
    c.daily(time.time() + DAY / 2)
    c.run_now()
    c.wait_count(seconds=6)
    return "systemctl start ran it"


point = Behaviour("point", TRIED, "A test can kill the work at a named point",
                  none={"systemd": "systemctl.kill", "cron": "cron.fields", "nohup": "nohup", "workmanager": "wm.testing"})


@point.of("stormy")
def _(c):
    c.ground.environment["BACKGROUND_APP_CRASH_AT"] = "app.beforeResult"
    c.start()
    c.once(time.time())
    row = until(lambda: [row for row in c.asked("history", app=True) or [] if row["outcome"] == "crashed"], 10, "it was not killed there")[0]
    c.power_cut()
    del c.ground.environment["BACKGROUND_APP_CRASH_AT"]
    c.start()
    until(lambda: [row for row in c.asked("history", app=True) if row["outcome"] == "completed"], 30, "it was not made up for")
    return f"killed at app.beforeResult its history says \"{row['outcome']}\", and the next launch completed it"


ended = Behaviour("quit", TRIED, "One command ends everything, including work that would start at the next login", {"cron": "crontab.remove"})


@ended.rest
def _(c):
    c.start_endless()
    if c.name == "cron":
        c.every_minute("long", prefix=f"flock -n -o {c.ground.folder}/lock ")
    elif c.name == "stormy":
        c.daily(time.time() + 12)
        c.once(time.time())
    else:
        c.daily(int(time.time()) + 3, body="long")
    c.wait_count()
    c.ground.run("crontab", "-r") if c.name == "cron" else c.end()
    until(lambda: not c.workers(), 8, "the running work continued")
    before = c.count()
    c.power_cut()
    c.start()
    time.sleep(14 if c.name == "stormy" else 6)
    if c.count() != before:
        raise No("it started again at the next login")
    return "no work continued, and no work started again"
