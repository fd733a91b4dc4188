#!/usr/bin/env python3
"""Tests Stormy's notifications on ten real notification servers, and without a server: pressed, restarted, frozen, killed.

Each server runs on a private bus and a virtual display (desks.py). For each feature (features.py), a separate app in a new home shows
notifications, and buttons are pressed with a mouse. The results come from the app's log, the bus and the pixels. A "no" that the server
causes is in the table EXPECTED with its reason. Every other "no" is a fault of Stormy or of this test, and the exit code is 1.

Missing packages are installed, and removed at the end, because other tests need a machine without a desktop. Pictures of the screens are
stored in .build/notification-servers/.

usage: conformance.py [SERVER... | --all | --seed N | --sample N] [--feature KEY]... [--write] [--keep]

    SERVER      dunst xfce4-notifyd mate notification-daemon lxqt notify-osd mako swaync gnome-shell plasma none
    --seed N    tests dunst and one other server, which N chooses
    --sample N  for CI: as --seed, but without complete desktops, and only with the features in SAMPLE. Because CI does other work on
                two cores, a feature with a fault is tested again, and both results are printed. Only dunst is tested if packages cannot
                be installed.
    --feature   tests only this feature
    --write     after each server, writes measured-servers.json, which doctor reads, and the page of the documentation. Results that were
                not measured are kept.
    --keep      keeps the packages installed

The environment variable BIN can name another folder of built programs than .build/debug.
"""
import argparse
import datetime
import json
import pathlib
import random
import shutil
import signal
import sys
import time
import traceback

import packages
from bus import No
from desks import DESKS, ROOT
from features import FEATURES
from scene import Scene

HERE = pathlib.Path(__file__).resolve().parent
PICTURES = ROOT / ".build/notification-servers"
MEASURED = HERE.parents[1] / "Sources/API/BackgroundCommands/Doctor/measured-servers.json"
PAGE = ROOT / "Sources/API/UserNotifications/UserNotifications.docc/Servers.md"

# The reason that the table shows if the cause is unknown. The cause can be the server, Stormy or this test. The result counts as
# a fault.
NOT_UNDERSTOOD = "not understood yet"
# The features that a server does not support, each with the reason for the table of the documentation.
NO_FIELDS = {"reply": "the server has no text fields, so a button with a text field is not shown"}
EXPECTED = {
    "dunst": NO_FIELDS,
    "xfce4-notifyd": NO_FIELDS | {"body": "if the user presses a notification, the server closes the notification and does not report this"},
    "mate": NO_FIELDS | {"dismissal": "if the user closes a notification, the server reports that the notification expired"},
    "notification-daemon": NO_FIELDS | {
        key: "the server reports that the notification was closed, but keeps the notification on the screen" for key in ("takeoff", "progress-ends", "burst", "quit")},
    "lxqt": NO_FIELDS,
    "notify-osd": NO_FIELDS | {key: "the server does not draw buttons" for key in ("buttons", "press", "again", "leaves")} | {
        key: "the user cannot press a notification on this server" for key in ("body", "dismissal", "closed-stays-closed")} | {
        "stays": "the server removes every notification after some time, without an action of the user"},
    "mako": NO_FIELDS,
    "swaync": NO_FIELDS | {"stays": "the server moves the notification from the screen to a panel after 10 s"},
    "gnome-shell": NO_FIELDS | {
        "stays": "the server moves the notification from the screen to a list after 4 s", "agent-killed": "if the agent replaces a notification on the screen, the server removes the buttons of the notification"},
    "plasma": {},
    "none": {},
}
# The features that CI tests.
SAMPLE = ["shown", "press", "leaves", "takeoff", "server-restart", "agent-killed"]
WHOLE_DESKTOPS = ["gnome-shell", "plasma"]
# Features that only these desks have. The desk without a server has no other features than these.
ONLY = {"waits": ["none"]}


def features_of(name):
    return [key for key in FEATURES if name in ONLY.get(key, [] if name == "none" else [name])]


class Result:
    """The result of one feature on one server."""

    def __init__(self, key, why=None, note=None, expected=None, seconds=0.0):
        self.key, self.why, self.note, self.expected, self.seconds = key, why, note, expected, seconds

    @property
    def is_yes(self):
        return self.why is None

    @property
    def is_fault(self):
        return not self.is_yes and self.expected is None

    @property
    def text(self):
        if not self.is_yes:
            return f"no: {self.expected or NOT_UNDERSTOOD}"
        return "yes" if not self.note else f"yes {self.note}"

    def line(self, name):
        mark = "FAULT" if self.is_fault else "yes" if self.is_yes else "no"
        said = [word for word in (self.why, self.note) if word]
        if self.expected and not self.is_yes:
            said = [self.expected] + ([f"({self.why})"] if self.why != self.expected else [])
        if self.expected and self.is_yes:
            said.append(f'(the table of this test says "no: {self.expected}")')
        return f"{name:19} {self.key:19} {mark:5} {self.seconds:5.1f} s  {' '.join(said)}".rstrip()


def judge(desk, key, attempt):
    """Tests one feature in a separate home. Restarts the server if notifications remain."""
    if not desk.is_alive():
        desk.restart_server()
    scene = Scene(desk, f"{key}{attempt}", PICTURES / desk.name)
    expected = EXPECTED[desk.name].get(key)
    begun = time.monotonic()
    try:
        note = FEATURES[key][2](scene)
        result = Result(key, note=note, expected=expected)
    except No as no:
        result = Result(key, why=str(no), expected=expected)
        try:
            desk.save(PICTURES / desk.name / f"{key}-no.png")
        except (RuntimeError, OSError):
            pass
    result.seconds = time.monotonic() - begun
    desk.thaw()
    if not scene.leave():
        desk.restart_server()
    if result.is_fault:
        keep_evidence(scene, key)
    return result


def keep_evidence(scene, key):
    """Writes the logs of the app and the agent and the messages on the bus to a file next to the picture of the screen."""
    log = scene.state / "agent.log"
    with open(PICTURES / scene.desk.name / f"{key}-no.txt", "w") as file:
        file.write("The app's log:\n" + scene.log.read_text(errors="replace"))
        file.write("\nThe agent's log:\n" + (log.read_text(errors="replace") if log.exists() else ""))
        file.write("\nThe bus:\n" + "".join(f"{json.dumps(event)[:1500]}\n" for event in scene.bus.said()[-60:]))


def measure(name, keys, attempts=1):
    """Tests the features on one server. Returns the server's name, vendor and version, and the results."""
    desk_class = DESKS[name]
    packages.install(desk_class.packages)
    shutil.rmtree(PICTURES / name, ignore_errors=True)
    (PICTURES / name).mkdir(parents=True)
    results = []
    with desk_class() as desk:
        print(f"{name}: {' '.join(desk.information[:3])} [{' '.join(desk.capabilities)}]", flush=True)
        for key in keys:
            try:
                result = judge(desk, key, "")
                if result.is_fault and attempts > 1:
                    print(result.line(name) + "; once more:", flush=True)
                    result = judge(desk, key, "-again")
            except No as no:
                result = Result(key, why=f"the desk failed: {no}", expected=EXPECTED[name].get(key))
            except Exception:
                traceback.print_exc()
                result = Result(key, why="the test itself failed", expected=EXPECTED[name].get(key))
            results.append(result)
            print(result.line(name), flush=True)
        return desk.information[:3], results


# The files that this script writes.

def write(measured):
    """Writes the table and the page. `measured` holds the server's information and the results by the name of the desk."""
    day = datetime.date.today().isoformat()
    known = {server["desk"]: server for server in json.loads(MEASURED.read_text())["servers"]} if MEASURED.exists() else {}
    for name, (information, results) in measured.items():
        features = known.get(name, {}).get("features", {}) | {result.key: result.text for result in results}
        known[name] = {"desk": name, "server": information[0], "version": information[2],
                       "features": {key: features[key] for key in features_of(name) if key in features}}
    table = {"measured": day, "servers": [known[name] for name in DESKS if name in known]}
    MEASURED.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(table))


def page(table):
    """Returns the page of the documentation."""
    servers = table["servers"]
    notes = []

    def cell(server, key):
        said = server["features"].get(key)
        if said is None:
            return "–"
        word, _, why = said.partition(": ") if said.startswith("no") else said.partition(" ")
        if not why:
            return word
        why = why.strip("()")
        if why not in notes:
            notes.append(why)
        return f"{word} ({notes.index(why) + 1})"

    lines = [f"| {FEATURES[key][0]} | " + " | ".join(cell(server, key) for server in servers) + " |" for key in FEATURES]
    versions = [f"| {server['desk']} | {server['server']} | {server['version']} |" for server in servers if server["server"]]
    return "\n".join([
        "# Notification servers, measured", "",
        "Shows which features of notifications work on ten notification servers of Debian, and without a notification server.", "",
        "## Overview", "",
        "A notification server is the program that draws notifications on the desktop. Each app has an agent, a process that sends the app's notifications to the server.",
        f"The command `make notification-servers` measured the features on {table['measured']}. Each server had a separate display. The test moved the mouse and pressed buttons like a user.",
        "The word \"no\" means that the server does not support the feature, and a note below the table gives the reason. The words \"not understood yet\" mean that the cause is not known.",
        "The cause can be the server, this library or the test. The sign \"–\" means that the feature was not measured on this server.", "",
        "The first table lists the servers. In the second table, each server has a column, and the column \"none\" is a session without a notification server.", "",
        "| Column | Notification server | Version |", "|---|---|---|", *versions, "",
        "| | " + " | ".join(server["desk"] for server in servers) + " |",
        "|---" * (len(servers) + 1) + "|", *lines, "",
        "\n\n".join(f"{number}. {why[0].upper()}{why[1:]}." for number, why in enumerate(notes, 1)), "",
        "## Features", "",
        "\n\n".join(f"- **{title}**: {meaning}" for title, meaning, _ in FEATURES.values()), ""])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("servers", nargs="*", metavar="SERVER")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--feature", action="append", choices=sorted(FEATURES))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--keep", action="store_true")
    chosen = parser.parse_args()
    for name in chosen.servers:
        if name not in DESKS:
            parser.error(f"no server is called {name}: {' '.join(DESKS)}")
    if chosen.seed is not None:
        chosen.servers = ["dunst", random.Random(chosen.seed).choice([name for name in DESKS if name != "dunst"])]
    elif chosen.sample is not None:
        others = [name for name in DESKS if name not in ["dunst", "none", *WHOLE_DESKTOPS]]
        chosen.servers = ["dunst", random.Random(chosen.sample).choice(others)]
        chosen.feature = chosen.feature or SAMPLE
        if not packages.can_install(DESKS[chosen.servers[1]].packages):
            print(f"{chosen.servers[1]} cannot be installed here: dunst alone")
            chosen.servers = ["dunst"]
    elif chosen.all or not chosen.servers:
        chosen.servers = list(DESKS)
    return chosen


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    chosen = arguments()
    print(f"chosen: {' '.join(chosen.servers)}", flush=True)
    measured, begun = {}, time.monotonic()
    try:
        for name in chosen.servers:
            keys = [key for key in features_of(name) if not chosen.feature or key in chosen.feature]
            try:
                measured[name] = measure(name, keys, attempts=1 if chosen.sample is None else 2)
            except Exception as error:
                # If a server cannot be installed or does not start, the tests of the other servers still run.
                print(f"{name}: FAULT: {type(error).__name__}: {error}", flush=True)
                results = [Result(key, why=f"the desk failed: {error}", expected=EXPECTED[name].get(key)) for key in keys]
                measured[name] = (["", "", "", ""], results)
            if chosen.write:
                write(measured)
    finally:
        if not chosen.keep:
            packages.remove()
    faults = [result.line(name) for name, (_, results) in measured.items() for result in results if result.is_fault]
    count = sum(len(results) for _, results in measured.values())
    print(f"{len(measured)} servers, {count} results, {time.monotonic() - begun:.0f} s; what the screens showed: {PICTURES}")
    if chosen.write:
        print(f"Wrote {MEASURED} and {PAGE}")
    print("\n".join(["Not as expected:", *faults] if faults else ["held: every feature is as expected"]))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
