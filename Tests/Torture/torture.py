#!/usr/bin/env python3
"""Kills agent and app, over and over, while fifty requests go round; then judges what happened.

Every kill is SIGKILL: at a named point of the agent (BACKGROUND_CRASH_AT), at a named point of an app process
(BACKGROUND_APP_CRASH_AT), or at any moment, of either. The handlers write what they do to a log of their own, on the disk
before they go on; the judge believes that log and not the ledger:

- nothing is lost: whoever was submitted last and has not said "last" must still be launched, so when the word "enough" is
  given every request comes to its "last" line, after its last "submitted";
- never two live launches of one request: each handler holds a lock that goes with its process; one that finds it taken
  says "overlap";
- every relaunch is explained: in the ledger's history, read after every kill because it is bounded, each generation after
  the first names its reason; a request (by its token) has one result at most, and no launch after it.

With --power every other kill is a power cut: every process dies, and what was not synced is gone (power_cut.py).

usage: torture.py [--power] [KILLS] [SEED]
"""
import os, random, shutil, signal, sqlite3, subprocess, sys, tempfile, time

import power_cut

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.join(ROOT, ".build", "debug")
HAS_POWER_CUTS, KILLS, SEED = power_cut.arguments(300)
REQUESTS = 50
AGENT_POINTS = ["agent.launchCommitted", "agent.spawned", "agent.launchStarted", "agent.launchEnded"]
APP_POINTS = ["app.beforeResult", "app.afterResult"]


class Ground:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="torture-")
        self.log = os.path.join(self.folder, "handlers.log")
        self.state = os.path.join(self.folder, "state", "proving-ground")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("DBUS_", "DISPLAY", "XDG_"))}
        self.environment.update(
            HOME=self.folder, XDG_STATE_HOME=os.path.join(self.folder, "state"), PROVING_LOG=self.log,
            PROVING_FOLDER=self.folder, PROVING_GROUND_NO_AGENT="1", BACKGROUND_UNLIMITED_REQUESTS="1")
        # The handlers' log is the judge's, and outside.
        self.disk = None
        if HAS_POWER_CUTS:
            os.mkdir(os.path.join(self.folder, "state"))
            self.disk = power_cut.Disk(os.path.join(self.folder, "state"), os.path.join(self.folder, "unsynced"))
            self.environment.update(self.disk.environment)
        open(self.log, "w").close()
        self.history = {}
        # What launches outside a cursed agent's life say, kept for a failure.
        self.agent_log = open(os.path.join(self.folder, "agent.log"), "wb")

    def run(self, *arguments):
        return subprocess.run([os.path.join(BIN, "proving-ground"), *arguments], env=self.environment, check=True,
                              capture_output=True, text=True).stdout

    def agent(self, **curse):
        return subprocess.Popen([os.path.join(BIN, "background-agent"), "--app", "proving-ground"],
                                env=dict(self.environment, **curse), stderr=self.agent_log, stdout=self.agent_log)

    def rows(self, query):
        # Read only: the last one to close the ledger writes into it what a killed agent left beside it, and a power cut knows nothing
        # of that.
        connection = sqlite3.connect(f"file:{self.state}/agent.sqlite?mode=ro", uri=True, timeout=10)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    def collect(self):
        """What the history says now; it keeps the last thousand only."""
        for row in self.rows("SELECT id, identifier, generation, reason, outcome, requestToken FROM launch"):
            self.history[row[0]] = row[1:]

    def lines(self):
        with open(self.log) as file:
            return [line.split() for line in file.read().splitlines()]


def ended_by_itself(agent, seconds):
    try:
        agent.wait(seconds)
        return True
    except subprocess.TimeoutExpired:
        return False


def one_kill(ground, dice, tally):
    """Starts an agent that, or whose apps, will die; returns when somebody did."""
    kind = dice.choice(["agent point", "app point", "agent any", "app any"])
    tally[kind] = tally.get(kind, 0) + 1
    if kind == "agent point":
        agent = ground.agent(BACKGROUND_CRASH_AT=f"{dice.choice(AGENT_POINTS)}:{dice.randint(1, 8)}")
        if not ended_by_itself(agent, 5):
            agent.kill()
    elif kind == "app point":
        # Every app process of this agent dies there, the first of its kind in a moment.
        before = len(ground.rows("SELECT 1 FROM launch WHERE outcome = 'crashed'"))
        agent = ground.agent(BACKGROUND_APP_CRASH_AT=dice.choice(APP_POINTS))
        deadline = time.time() + 5
        while time.time() < deadline and len(ground.rows("SELECT 1 FROM launch WHERE outcome = 'crashed'")) == before:
            time.sleep(0.02)
        agent.kill()
    elif kind == "agent any":
        agent = ground.agent()
        time.sleep(dice.uniform(0, 0.4))
        agent.kill()
    else:
        agent = ground.agent()
        time.sleep(dice.uniform(0.05, 0.4))
        for (pid,) in ground.rows("SELECT pid FROM launch WHERE endedAt IS NULL AND pid IS NOT NULL"):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        # The agent hears of it, sometimes.
        time.sleep(dice.uniform(0, 0.1))
        agent.kill()
    agent.wait()
    if ground.disk and dice.random() < 0.5:
        ground.disk.cut(dice)
        tally["power"] = tally.get("power", 0) + 1


def judge(ground):
    findings = []
    last = {}
    for line in ground.lines():
        if line[0] in ("overlap", "refused"):
            findings.append(" ".join(line))
        if line[0] in ("submitted", "last"):
            last[line[1]] = line[0]
    for number in range(REQUESTS):
        if last.get(f"cycle.{number}") != "last":
            findings.append(f"cycle.{number} was lost: its last word is {last.get(f'cycle.{number}')}")
    results = {}
    for number, (identifier, generation, reason, outcome, token) in sorted(ground.history.items()):
        if outcome is None:
            findings.append(f"launch {number} of {identifier} never ended")
        if generation > 1 and reason != f"relaunch after {generation - 1} without a result":
            findings.append(f"launch {number} of {identifier}, generation {generation}, does not say why: {reason}")
        if token in results:
            findings.append(f"launch {number} of {identifier}: its request had its result in launch {results[token]}")
        if outcome in ("completed", "failed", "expired"):
            results[token] = number
    numbers = sorted(ground.history)
    if numbers != list(range(1, len(numbers) + 1)):
        findings.append("some of the history was not seen")
    return findings


def main():
    print(f"seed {SEED}")
    dice, ground, tally = random.Random(SEED), Ground(), {}
    begin = time.time()
    ground.run("cycle", str(REQUESTS))
    for number in range(KILLS):
        one_kill(ground, dice, tally)
        ground.collect()
        if (number + 1) % 50 == 0:
            print(f"{number + 1} kills, {len(ground.lines())} lines, {time.time() - begin:.0f} s", flush=True)
    open(os.path.join(ground.folder, "enough"), "w").close()
    agent = ground.agent()
    deadline = time.time() + 120
    while time.time() < deadline and (
            ground.rows("SELECT 1 FROM request") or ground.rows("SELECT 1 FROM launch WHERE endedAt IS NULL")):
        time.sleep(0.1)
    agent.terminate()
    agent.wait()
    ground.collect()
    findings = judge(ground)
    launches = len(ground.history)
    print(f"{KILLS} kills ({', '.join(f'{count} {kind}' for kind, count in sorted(tally.items()))}), "
          f"{launches} launches, {len(ground.lines())} lines of handlers, {time.time() - begin:.0f} s")
    if ground.disk:
        print(f"power cuts took back {ground.disk.lost_writes} writes and {ground.disk.lost_names} changes of names")
    if ground.rows("PRAGMA integrity_check") != [("ok",)]:
        findings.append("the ledger is damaged")
    for finding in findings:
        print(f"FOUND {finding}")
    if findings:
        print(f"seed {SEED}; everything is kept in {ground.folder}")
        raise SystemExit(1)
    print("held: nothing lost, never two at once, every relaunch explained")
    shutil.rmtree(ground.folder)


if __name__ == "__main__":
    main()
