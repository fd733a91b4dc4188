"""Behaviours of times and missed work."""
import re
import time

from behaviours import Behaviour
from contenders import BINARIES, DAY, No, clock, until

TIME, MISSED = "Time", "Missed runs"


def exactly(c, count, settle=2.5):
    """Expects a number of runs, and no further run after a short time."""
    time.sleep(settle)
    if c.count() != count:
        raise No(f"the number of runs was {c.count()} instead of {count}")


def soon(c, seconds=5):
    """Returns a due time some seconds ahead on the contender's clock, and its real time. Only cron has a different clock."""
    if c.name == "cron":
        at = c.minute(ahead=3)
        return at, c.real(at)
    at = int(time.time()) + seconds
    return at, at


def sleep_until(moment):
    time.sleep(max(moment - time.time(), 0))


def is_kept(c):
    """Returns whether the schedule still exists."""
    if c.name == "cron":
        return bool(c.ground.run("crontab", "-l").stdout.strip())
    if c.name == "nohup":
        return c.process.poll() is None
    if c.name == "stormy":
        return bool(c.asked("status")["schedule"]["next"])
    return c.ground.systemctl("is-active", f"{c.unit}.timer").stdout == "active\n"


minute = Behaviour("clock", TIME, "A daily run begins at its time of day", {"workmanager": "timer.accuracy"})


@minute.rest
def _(c):
    c.start()
    at, due = soon(c)
    c.daily(at)
    c.wait_count(seconds=due - time.time() + c.patience)
    late = time.time() - due
    if late < -0.7:
        raise No(f"it ran {-late:.0f} s too early")
    # In the clock of cron, the due minute lasts three real seconds.
    if late > 4:
        raise No(f"the run began {late:.0f} s late")
    return f"{late:.1f} s after it"


two = Behaviour("two", TIME, "Two schedules that are due in the same second both run")


@two.of("systemd", "cron", "nohup")
def _(c):
    c.start()
    at, due = soon(c)
    c.daily(at, **({"more": True} if c.name == "cron" else {}))
    c.daily(at, unit="job-two")
    c.wait_count(2, due - time.time() + c.patience)
    return "both ran"


@two.of("workmanager")
def _(c):
    c.start()
    at, due = soon(c, 3)
    c.daily(at)
    c.daily(at, unit="workmanager-5d1c21d1")
    c.wait_count(2, due - time.time() + c.patience)
    return "both ran"


@two.of("stormy")
def _(c):
    c.start()
    at, due = soon(c)
    c.daily(at)
    c.once(at)
    until(lambda: c.checks() and c.begun(), due - time.time() + c.patience, f"{len(c.checks())} and {c.begun()} ran")
    return "Stormy's check and another app's request ran"


zone = Behaviour("zone", TIME, "After a change of the time zone, a daily run begins at its time of day in the new time zone",
                 {"cron": "cron.zone"}, {"workmanager": "wm.periodic"})


@zone.rest
def _(c):
    c.start()
    at, due = soon(c, 8)
    c.daily(at + 9 * 3600)
    time.sleep(1)
    c.ground.set_zone("Asia/Tokyo")
    c.wait_count(seconds=due - time.time() + c.patience, complaint="it stayed with the old zone: it had not run at the time of day of the new one")
    if time.time() < due - 0.7:
        raise No("it ran at once instead")
    return "it ran at the new zone's time"


gap = Behaviour("gap", TIME, "A daily run at 02:30 also runs on the day when the clocks change from 02:00 to 03:00",
                {"systemd": "time.range", "nohup": "sleep"}, {"workmanager": "wm.periodic"})


@gap.of("systemd")
def _(c):
    done = c.ground.run("systemd-analyze", "calendar", "--base-time=2025-03-29 03:00:00", "*-*-* 02:30:00", TZ="Europe/Berlin", check=True)
    found = re.search(r"Next elapse: \w+ (\S+ \S+ \S+)", done.stdout).group(1)
    if not found.startswith("2025-03-30"):
        raise No(f"systemd-analyze calendar shows {found} as the next run after 29 March")
    return f"due at {found}"


@gap.of("cron")
def _(c):
    c.ground.set_zone("Europe/Berlin")
    c.line("30 2 * * *", str(c.ground.worker()))
    c.daemon = c.ground.start(["faketime", "-f", "@2025-03-30 01:58:30 x30", "/usr/sbin/cron", "-f"])
    c.wait_count(seconds=15)
    exactly(c, 1)
    return "it ran once, soon after 03:00"


@gap.of("nohup")
def _(c):
    # The loop checks the time as fast as possible. A minute of its clock takes half a second.
    c.ground.set_zone("Europe/Berlin")
    worker = c.ground.worker()
    loop = f"nohup sh -c 'while sleep 20; do [ $(date +%H:%M) = 02:30 ] && {{ {worker}; sleep 60; }}; done'"
    c.ground.start(["faketime", "-f", "@2025-03-30 01:55:00 x120", "sh", "-c", loop])
    c.wait_count(seconds=20, complaint="the work had not run by 03:35")
    return "it ran"


@gap.of("stormy")
def _(c):
    c.ground.environment |= {"STORMY_NO_AGENT": "1", "TZ": "Europe/Berlin"}
    words = ["faketime", "-f", "2025-03-29 13:00:00", BINARIES / "stormy"]
    c.ground.run(*words, "schedule", "--at", "02:30", "--exact", check=True)
    found = re.search(r'"next" *: *"([^"]+)"', c.ground.run(*words, "status", "--json", check=True).stdout).group(1)
    if not found.startswith("2025-03-30"):
        raise No(f"the next is {found}")
    return f"due at {found}"


spread = Behaviour("spread", TIME, "Each machine delays its runs by a different constant time, so that many machines do not send requests in one second",
                   none={"cron": "anacron.delay", "nohup": "sleep", "workmanager": "wm.periodic"})


@spread.of("systemd")
def _(c):
    c.start()
    at = time.time() + DAY / 2
    c.write(f"OnCalendar=*-*-* {clock(at)}\nRandomizedDelaySec=3600\nFixedRandomDelay=true\n", c.ground.worker())
    seen = []
    for _ in range(2):
        seen.append(c.ground.systemctl("show", "-P", "NextElapseUSecRealtime", "job.timer").stdout.strip())
        c.power_cut()
        c.start()
    if seen[0] != seen[1] or clock(at) in seen[0]:
        raise No(f"{clock(at)} became {seen[0]}, and {seen[1]} after a restart")
    return f"{clock(at)} became {seen[0].split()[2]}, before and after a restart"


@spread.of("stormy")
def _(c):
    c.configure("[schedule]\nspread_seconds = 3600\n")
    c.start()
    at, seen = clock(time.time() + DAY / 2), []
    for _ in range(2):
        c.stormy("schedule", "--at", at)
        seen.append(c.asked("status")["schedule"]["wakeAt"])
        c.power_cut()
        c.start()
    if seen[0] != seen[1] or at in seen[0]:
        raise No(f"{at} became {seen}")
    return f"{at} became {seen[0]}, before and after a restart"


off = Behaviour("off", MISSED, "A run that was missed while the machine was off runs later, once",
                {"nohup": "nohup", "workmanager": "timer.persistent"})


@off.of("cron")
def _(c):
    return make_up(c, 1)


def make_up(c, days):
    """Simulates a day or more without power on anacron's clock."""
    c.ground.worker(name="job")
    c.anacron().wait(20)
    c.power_cut()
    c.anacron(days=days).wait(20)
    c.anacron(days=days).wait(20)
    exactly(c, 2, 0.5)
    return f"{days} day(s) later anacron ran it once"


@off.rest
def _(c):
    c.start()
    at, due = soon(c)
    c.daily(at)
    c.settle()
    c.power_cut()
    sleep_until(due + 1)
    c.start()
    c.wait_count()
    exactly(c, 1)
    return "it ran once after the start"


many = Behaviour("many", MISSED, "Three missed runs become one run", {"nohup": "nohup", "workmanager": "timer.persistent"})


@many.of("cron")
def _(c):
    return make_up(c, 3)


@many.of("systemd")
def _(c):
    c.start()
    at = int(time.time()) + 3
    lines = "".join(f"OnCalendar=*-*-* {clock(at + more)}\n" for more in range(3))
    c.write(f"{lines}Persistent=true\n", c.ground.worker())
    c.power_cut()
    sleep_until(at + 4)
    c.start()
    c.wait_count()
    exactly(c, 1)
    return "one run after the start"


@many.of("nohup")
def _(c):
    c.start()
    c.loop(f"while sleep 2; do {c.ground.worker()}; done")
    c.power_cut()
    time.sleep(6)
    c.start()
    c.wait_count()


@many.of("workmanager")
def _(c):
    c.start()
    c.periodic(2, frequency=2)
    c.power_cut()
    time.sleep(6)
    before = c.count()
    c.start()
    c.wait_count(before + 1)
    exactly(c, before + 1, 1)
    return "one run after the start"


@many.of("stormy")
def _(c):
    c.ground.environment["STORMY_NO_AGENT"] = "1"
    c.ground.start_bus()
    c.daily(time.time() - 60)
    words = ["faketime", "-f", "+3d", BINARIES / "background-agent", "--app", "stormy"]
    c.ground.start(words, DONT_FAKE_MONOTONIC="1")
    c.wait_count(seconds=15)
    exactly(c, 1)
    return "by an agent whose clock is three days on: one run"


skip = Behaviour("skip", MISSED, "With a setting, missed runs do not run later, and the schedule does not change",
                 {"nohup": "nohup", "workmanager": "wm.catch-up"})


@skip.of("stormy")
def _(c):
    c.configure("[schedule]\nmissed = \"skip\"\n")
    c.ground.environment["STORMY_NO_AGENT"] = "1"
    c.ground.start_bus()
    c.daily(time.time() - 60)
    # A run that is up to ten minutes late does not count as a missed run.
    c.ground.start(["faketime", "-f", "+3d", BINARIES / "background-agent", "--app", "stormy"], DONT_FAKE_MONOTONIC="1")
    until(lambda: "skipped" in [entry["outcome"] for entry in c.asked("history")], 15, "nothing was left out")
    exactly(c, 0)
    if not is_kept(c):
        raise No("no further run is scheduled")
    return "by an agent whose clock is three days on: left out, which its history says"


@skip.rest
def _(c):
    c.start()
    at, due = soon(c)
    c.daily(at, **({"persistent": False} if c.name == "systemd" else {}))
    c.settle()
    c.power_cut()
    # After this pause, the minute in which cron would still run the work is over.
    sleep_until(due + 3.5)
    c.start()
    exactly(c, 0, c.patience)
    if not is_kept(c):
        raise No("no further run is scheduled")
    return "it did not run, and waits for its next time"


stopped = Behaviour("stopped", MISSED, "If all processes are stopped at the due time (in place of sleep), the work runs once afterwards", {"nohup": "sleep"})


@stopped.rest
def _(c):
    c.start()
    at, due = soon(c)
    c.daily(at)
    c.settle()
    c.ground.stop_all()
    sleep_until(due + 4)
    c.ground.go_on()
    c.wait_count()
    exactly(c, 1)
    return "it ran once"


restart = Behaviour("restart", MISSED, "After a restart of the machine the schedule continues without a command", {"nohup": "nohup"})


@restart.rest
def _(c):
    c.start()
    at, due = soon(c, 8)
    if c.name == "cron":
        at, due = c.minute(ahead=4), c.real(c.minute(ahead=4))
    c.daily(at)
    c.settle()
    c.power_cut()
    c.start()
    c.wait_count(seconds=due - time.time() + c.patience)
    exactly(c, 1)
    return "it ran"


once = Behaviour("once", MISSED, "If a run was planned for one later time and the power is cut at this time, the run is not lost",
                 {"cron": "cron.minute", "nohup": "nohup", "workmanager": "wm.transient"})


@once.rest
def _(c):
    c.start()
    at, due = soon(c)
    c.once(at)
    c.settle()
    c.power_cut()
    sleep_until(due + 3.5)
    c.start()
    c.wait_count()
    exactly(c, 1)
    return "it ran once after the start"


served = Behaviour("served", MISSED, "After a restart, work that ran today does not run again, and the schedule of the work does not change",
                   {"nohup": "nohup", "workmanager": "timer.startup"})


@served.of("cron")
def _(c):
    c.ground.worker(name="job")
    for _ in range(2):
        c.anacron().wait(20)
        c.power_cut()
    exactly(c, 1, 0.5)
    return "anacron ran it once that day"


@served.rest
def _(c):
    c.start()
    at, due = soon(c, 3)
    c.daily(at)
    c.wait_count(seconds=due - time.time() + c.patience)
    time.sleep(1)
    c.power_cut()
    c.start()
    # The limit includes three times: the delay of a timer that begins with its manager, the timer's accuracy of a minute, and the
    # time for other work.
    exactly(c, 1, c.patience + 10)
    if not is_kept(c):
        raise No("no further run is scheduled")
    return "it ran once"
