"""Behaviours with conditions of work."""
import time

from behaviours import Behaviour
from contenders import BINARIES, No, until
from desk import Refusing, System

GROUP = "Conditions"
SAYS = {"systemd": "service.condition", "workmanager": "wm.constraints"}
NONE = {"cron": "cron.fields", "nohup": "nohup"}


def waits(condition):
    """Returns the trial of a condition. Work is due while the condition is not met, and has to begin by itself when it is met."""
    def run(c):
        system = System(c.ground)
        c.start()
        system.set(condition, False)
        if c.name == "systemd":
            c.once(time.time() + 1, service=f"ExecCondition={system.question(condition)}\n")
        elif c.name == "workmanager":
            c.once(time.time())
        else:
            begin(c, condition)
        time.sleep(4)
        if c.count():
            raise No("the run began although the condition was not met")
        system.set(condition, True)
        c.wait_count(seconds=12, complaint="the run was skipped, and was not repeated later")
        return "it waited, and ran when it could"
    return run


def begin(c, condition):
    # This command switches off delays that the system may add. The trial does not test such delays.
    c.app("cycle", "0")
    c.app("work", "work.none", condition)
    c.count = lambda: c.begun("work.none")


power = Behaviour("power", GROUP, "If a run is due on battery, the run waits for external power", SAYS, NONE)
power.of("systemd", "workmanager", "stormy")(waits("power"))

network = Behaviour("network", GROUP, "If a run is due without a network, the run waits for a network", SAYS, NONE)
network.of("systemd", "workmanager", "stormy")(waits("network"))

metered = Behaviour("metered", GROUP, "If a run is due on a metered network, the run waits for an unmetered network", SAYS, NONE)
metered.of("systemd", "workmanager")(waits("metered"))


@metered.of("stormy")
def _(c):
    system, server = System(c.ground), Refusing(0)
    c.start()
    system.set("metered", False)
    c.ground.start([BINARIES / "courier-example", "get", server.url], COURIER_CHEAP="1")
    time.sleep(4)
    if server.times:
        raise No("the run began although the condition was not met")
    system.set("metered", True)
    until(lambda: server.times, 15, "it did not go on when it could")
    server.close()
    return "a download that may not cost money waited, and came when it could"


lost = Behaviour("power-lost", GROUP, "If external power is lost during the run, the run is stopped",
                 {"systemd": "unit.before", "workmanager": "wm.constraints"}, NONE)


@lost.of("systemd", "workmanager")
def _(c):
    system = System(c.ground)
    c.start()
    extra = {"service": f"ExecCondition={system.question('power')}\n"} if c.name == "systemd" else {}
    c.once(time.time() + (1 if c.name == "systemd" else 0), body="long", **extra)
    c.wait_count()
    system.set("power", False)
    until(c.warned, 6, "the run continued on battery")


@lost.of("stormy")
def _(c):
    system = System(c.ground)
    c.start()
    c.app("cycle", "0")
    c.app("work", "work.main", "power")
    c.count = c.begun
    c.wait_count(seconds=10)
    system.set("power", False)
    until(c.warned, 15, "the run continued on battery")
    until(lambda: not c.workers(), 10, "it did not stop")
    return "it was told, and stopped"
