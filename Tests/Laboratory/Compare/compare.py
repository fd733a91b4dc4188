#!/usr/bin/env python3
"""Compares Stormy with four other ways to run background work on Linux: 40 behaviours, each tried in a real run.

The five contenders are systemd timers as in their manual pages, cron with anacron, a `nohup` loop, the units of
`workmanager_linux` as in its documentation and code, and Stormy. Each trial has a separate environment (ground.py): a user
manager in its cgroup and runtime folder, private crontabs and spools, a real nginx, and a real notification server. Trials do
not wait for hours. The verdicts "held" and "not held" come only from a run. If a contender has no way to do something, this
is declared with a sentence of its documentation. Code that a user has to write in the job does not count. The programs
curl(1), flock(1), timeout(1) and notify-send(1) count for all contenders. Sentences of manual pages are looked up in the
installed pages.

usage: compare.py [--only KEY]... [--contender NAME]... [--sample SEED] [--write] [--jobs N] [--list]

    --only       only this behaviour, with its name in --list
    --contender  systemd cron nohup workmanager stormy
    --sample     six random behaviours
    --write      writes the page of the documentation, if everything was tried
    --jobs       the number of simultaneous trials (4)

Exits with 1 if Stormy does not hold a behaviour, or if a trial failed. BIN is the folder of the built programs
(.build/debug).
"""
import argparse
import concurrent.futures
import datetime
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
import traceback

import behaviours
import documentation
from behaviours import ORDER
from contenders import CONTENDERS, No
from ground import ROOT, Ground, obstacle
from page import page

PAGE = ROOT / "Sources/TestKit/BackgroundTasksTesting/BackgroundTasksTesting.docc/Compared.md"


class Result:
    """The result of one behaviour for one contender."""

    def __init__(self, behaviour, name, verdict, seen, seconds=0.0):
        self.behaviour, self.name, self.verdict, self.seen, self.seconds = behaviour, name, verdict, seen, seconds

    @property
    def citation(self):
        """Returns the citation of the documentation, or None if the behaviour is held or nothing is cited."""
        if self.verdict == "held":
            return None
        return (self.behaviour.none if self.verdict == "none" else self.behaviour.says).get(self.name)

    @property
    def is_fault(self):
        if self.verdict == "failed" or self.name == "stormy":
            return self.verdict != "held"
        return self.verdict == "not held" and self.citation is None

    def line(self):
        words = {"held": "held", "not held": "NOT HELD", "none": "no mechanism", "failed": "TRIAL FAILED"}[self.verdict]
        return f"{self.behaviour.key:16} {self.name:12} {words:13} {self.seconds:5.1f} s  {self.seen}" + (
            "  [not as expected]" if self.is_fault else "")


def attempt(behaviour, name, number):
    if name in behaviour.none:
        return Result(behaviour, name, "none", "")
    begun = time.monotonic()
    try:
        ground = Ground(f"{number}")
        try:
            result = judge(ground, behaviour, name)
        finally:
            ground.close()
    except Exception as error:
        result = Result(behaviour, name, "failed", f"{type(error).__name__}: {error}")
        traceback.print_exc()
    result.seconds = time.monotonic() - begun
    # The folders of this trial have random names, which are removed from the output.
    result.seen = re.sub(r"/tmp/cmp-\w+", "…", result.seen)
    print(result.line(), flush=True)
    return result


def judge(ground, behaviour, name):
    try:
        seen = behaviour.ways[name](CONTENDERS[name](ground)) or ""
        return Result(behaviour, name, "held", seen)
    except No as no:
        result = Result(behaviour, name, "not held", str(no))
        if result.is_fault:
            keep(ground, behaviour.key, name)
        return result
    except Exception:
        keep(ground, behaviour.key, name)
        raise


def keep(ground, key, name):
    """Stores the log of a trial."""
    folder = ROOT / ".build/compare"
    folder.mkdir(parents=True, exist_ok=True)
    texts = [ground.said()] + [path.read_text(errors="replace") for path in sorted(ground.folder.glob("*.log")) if path.name != "output.log"]
    texts += [path.read_text(errors="replace") for path in sorted(ground.folder.glob("state/*/agent.log"))]
    (folder / f"{key}-{name}.txt").write_text("\n----\n".join(texts))


def arguments(every):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", action="append", choices=list(every), metavar="KEY")
    parser.add_argument("--contender", action="append", choices=ORDER, metavar="NAME")
    parser.add_argument("--sample", type=int, metavar="SEED")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--list", action="store_true")
    chosen = parser.parse_args()
    keys = chosen.only or list(every)
    if chosen.sample is not None:
        keys = random.Random(chosen.sample).sample(list(every), 6)
    chosen.keys = [key for key in every if key in keys]
    chosen.names = [name for name in ORDER if not chosen.contender or name in chosen.contender]
    chosen.is_whole = chosen.keys == list(every) and chosen.names == list(ORDER)
    if chosen.write and not chosen.is_whole:
        parser.error("a page is written of the whole table alone")
    return chosen


def try_all(every, chosen):
    """Runs all trials, the longest trials first."""
    slow = {"workmanager": 0}
    trials = sorted(((key, name) for key in chosen.keys for name in chosen.names), key=lambda trial: slow.get(trial[1], 1))
    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        futures = {trial: pool.submit(attempt, every[trial[0]], trial[1], number) for number, trial in enumerate(trials)}
        return {trial: future.result() for trial, future in futures.items()}


def versions():
    names = ["systemd", "cron", "anacron", "coreutils", "curl", "libnotify-bin", "dunst", "nginx-light"]
    lines = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *names], capture_output=True, text=True).stdout
    found = [line.rsplit("-", 1)[0] if "-" in line.split()[-1] else line for line in lines.splitlines()]
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    return ", ".join([*found, "workmanager_linux 0.1.1", f"Stormy at {commit}"])


def tell(results, chosen, seconds):
    """Prints the table and the unexpected results. Returns whether all results are as expected."""
    marks = {"held": "yes", "not held": "no", "none": "–", "failed": "?"}
    print("\n" + " " * 17 + "".join(f"{name:12}" for name in chosen.names))
    for key in chosen.keys:
        print(f"{key:17}" + "".join(f"{marks[results[key, name].verdict]:12}" for name in chosen.names))
    counts = {name: sum(results[key, name].verdict == "held" for key in chosen.keys) for name in chosen.names}
    print(f"{'of ' + str(len(chosen.keys)):17}" + "".join(f"{count:<12}" for count in counts.values()))
    faults = [result.line() for result in results.values() if result.is_fault]
    print(f"{len(results)} results, {seconds:.0f} s")
    print("\n".join(["Not as expected:", *faults] if faults else ["held: Stormy holds every one of them"]))
    return not faults


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    every = behaviours.load()
    chosen = arguments(every)
    if chosen.list:
        return print("\n".join(f"{key:16} {behaviour.title}" for key, behaviour in every.items()))
    if why := obstacle():
        sys.exit(f"it cannot be tried here: {why}")
    if wrong := documentation.missing():
        sys.exit("\n".join(["what is cited cannot be looked up:", *wrong]))
    if chosen.sample is not None:
        print(f"chosen: {' '.join(chosen.keys)}")
    begun = time.monotonic()
    results = try_all(every, chosen)
    is_fine = tell(results, chosen, time.monotonic() - begun)
    if chosen.write:
        day = datetime.date.today().isoformat()
        PAGE.write_text(page(every, results, {"day": day, "versions": versions(), "minutes": (time.monotonic() - begun) / 60}))
        print(f"Wrote {PAGE}")
    sys.exit(0 if is_fine else 1)


if __name__ == "__main__":
    main()
