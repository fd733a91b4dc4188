"""Behaviours of notifications. The other contenders use notify-send, which waits for the button that it shows."""
import signal
import time

from behaviours import Behaviour
from contenders import No, until
from desk import Screen

GROUP = "Notifications"
OTHERS = ("systemd", "cron", "nohup", "workmanager")


def show(c, options="", after=""):
    """Begins work that shows a notification as soon as the contender can."""
    body = f"answer=$(notify-send {options} Storm); [ \"$answer\" = yes ] && note pressed\n{after}"
    if c.name == "systemd":
        c.once(time.time() + 1, body)
    elif c.name == "cron":
        c.once(c.minute(), body)
    elif c.name == "nohup":
        worker = c.ground.worker(body)
        c.loop(f"{worker}")
    else:
        c.once(time.time(), body)


def desk(c):
    screen = Screen(c.ground)
    c.start()
    return screen


told = Behaviour("told", GROUP, "Background work shows a notification on the desktop")


@told.of("stormy")
def _(c):
    screen = desk(c)
    c.app("notify", "storm", "title=Storm", "seconds=1")
    screen.wait_shown()
    return "it stands there, and the app has long gone"


@told.rest
def _(c):
    screen = desk(c)
    show(c)
    screen.wait_shown(seconds=12)
    return "it stands there"


sender = Behaviour("button-sender", GROUP, "After `kill -9` of the process that showed a notification, the buttons work",
                   {name: "notify.action" for name in OTHERS})


@sender.of("stormy")
def _(c):
    screen = desk(c)
    c.app("notify", "storm", "title=Storm")
    screen.wait_shown()
    c.kill_scheduler(app=True)
    until(lambda: c.agent(app=True), 20, "no agent came back")
    screen.press("Accept")
    until(lambda: "response storm accept" in c.ground.log.read_text(), 20, "the press was not reported")
    return "the app heard of it"


@sender.rest
def _(c):
    screen = desk(c)
    show(c, "-A yes=Yes")
    screen.wait_shown(seconds=12)
    c.ground.signal(signal.SIGKILL, [*c.workers(), *c.ground.find("/notify-send")])
    # The scheduler needs these seconds to restart the work.
    time.sleep(4)
    count = screen.shown()
    screen.press("Yes")
    until(lambda: c.ground.lines("pressed"), 8, f"the pressed button was not reported. The number of notifications on the screen was {count}")
    return f"it was heard; {count} stood there"


server = Behaviour("button-server", GROUP, "After a restart of the notification server, the notification and its buttons work again",
                   {name: "notify.wait" for name in OTHERS})


@server.of("stormy")
def _(c):
    screen = desk(c)
    c.app("notify", "storm", "title=Storm")
    screen.wait_shown()
    screen.restart()
    screen.wait_shown(complaint="the notification was not shown again")
    screen.press("Accept")
    until(lambda: "response storm accept" in c.ground.log.read_text(), 20, "the press was not reported")
    return "it was shown again, and the app heard of it"


@server.rest
def _(c):
    screen = desk(c)
    show(c, "-A yes=Yes")
    screen.wait_shown(seconds=12)
    screen.restart()
    screen.wait_shown(complaint="the notification was not shown again")
    screen.press("Yes")
    until(lambda: c.ground.lines("pressed"), 8, "it was shown again, and the press was not reported")
    return "it was shown again, and heard"


once = Behaviour("told-once", GROUP, "If the process is killed just after it showed a notification, the notification is shown once",
                 {name: "notify.replace" for name in OTHERS})


@once.of("stormy")
def _(c):
    screen = desk(c)
    c.app("notify", "storm", "title=Storm")
    screen.wait_shown()
    c.kill_scheduler(app=True)
    c.app("notify", "storm", "title=Storm")
    time.sleep(6)
    screen.wait_shown(complaint="it does not stand there once")
    return "one stands there"


@once.rest
def _(c):
    screen = desk(c)
    show(c, "-r 4711", "sleep 30")
    screen.wait_shown(seconds=12)
    c.kill_worker()
    # If the contender does not restart the work automatically, the work is started manually.
    if c.name != "systemd":
        show(c, "-r 4711", "sleep 30")
    until(lambda: c.count() == 2, 12, "it was not begun again")
    time.sleep(1)
    if screen.shown() != 1:
        raise No(f"{screen.shown()} stand there")
    return "one stands there, by a number that the author chose"
