#!/usr/bin/env python3
"""Kills the agent and the app repeatedly while fifty requests resubmit themselves. Then checks what happened.

Every kill uses SIGKILL. The agent is killed at a named point (BACKGROUND_CRASH_AT) or at a random moment. App processes are also killed at a
named point (BACKGROUND_APP_CRASH_AT) or at a random moment. The handlers write their actions to a separate log, which is on the disk before
the handlers continue. The first two checks use this log and not the ledger:

- Nothing is lost. A request that was submitted and has not written "last" must still be launched. After the file "enough" is created,
  every request therefore writes a "last" line after its last "submitted" line.
- A request never has two live launches. Each handler holds a lock that ends with its process. A handler that finds the lock taken writes
  "overlap".
- Every relaunch is explained. In the ledger's history, each generation after the first has its reason. A request (by its token) has at
  most one result, and no launch after the result. The history is read after every kill because its length is limited.

With --power, a power cut follows about half of the kills: every process is killed, and changes that were not synced are lost (power_cut.py).

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
        # The log of the handlers is outside the disk that loses changes, because the checks use this log.
        self.disk = None
        if HAS_POWER_CUTS:
            os.mkdir(os.path.join(self.folder, "state"))
            self.disk = power_cut.Disk(os.path.join(self.folder, "state"), os.path.join(self.folder, "unsynced"))
            self.environment.update(self.disk.environment)
        open(self.log, "w").close()
        self.history = {}
        # The output of all agents. If the test fails, the file is kept.
        self.agent_log = open(os.path.join(self.folder, "agent.log"), "wb")

    def run(self, *arguments):
        return subprocess.run([os.path.join(BIN, "proving-ground"), *arguments], env=self.environment, check=True,
                              capture_output=True, text=True).stdout

    def agent(self, **curse):
        return subprocess.Popen([os.path.join(BIN, "background-agent"), "--app", "proving-ground"],
                                env=dict(self.environment, **curse), stderr=self.agent_log, stdout=self.agent_log)

    def rows(self, query):
        # The ledger is opened read-only. The last connection that closes would otherwise write a killed agent's log into the
        # ledger. The simulated disk would not record this write.
        connection = sqlite3.connect(f"file:{self.state}/agent.sqlite?mode=ro", uri=True, timeout=10)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    def collect(self):
        """Adds the ledger's current history to `history`, because the ledger keeps only the last thousand launches."""
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
    """Starts an agent and kills the agent, after its apps if the kind of kill names the app. Returns when the agent is dead."""
    kind = dice.choice(["agent point", "app point", "agent any", "app any"])
    tally[kind] = tally.get(kind, 0) + 1
    if kind == "agent point":
        agent = ground.agent(BACKGROUND_CRASH_AT=f"{dice.choice(AGENT_POINTS)}:{dice.randint(1, 8)}")
        if not ended_by_itself(agent, 5):
            agent.kill()
    elif kind == "app point":
        # Every app process of this agent dies at the kill point. The first process reaches the kill point soon.
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
        # In some rounds the agent detects the killed apps before the agent itself is killed.
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
        launches = "1 launch" if generation == 2 else f"{generation - 1} launches"
        if generation > 1 and reason != f"relaunch after {launches} without a result":
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
