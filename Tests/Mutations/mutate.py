"""Injects the bugs of mutations.json, one at a time, and says which test catches each.

usage: mutate.py [--quick] [--known-green] [NAME...]

Each is built in a copy of the checkout with a build folder of its own. The suite is run in two steps, the quick targets first; the
end-to-end tests only for what they do not catch; both must be green without any bug. Caught means that a test failed, or the process
that ran it ended: a run that goes on too long is no catch. A bug that is not caught, or does not compile, is a failure. `--quick` is
the first step alone; `--known-green` does not run the suite without any bug first.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
COPY = os.environ.get("MUTATE_FOLDER", os.path.join(ROOT, ".build-mutate"))
BUILD = os.path.join(COPY, ".build")
# The architecture reads sources as text: it would catch nothing that matters, or everything.
STEPS = (("^(?!EndToEndTests|ArchitectureTests|APICompileTests)", 900), ("EndToEndTests", 2400))
SWIFT = os.environ.get("SWIFT", "swift")
# One test that fails is enough.
FAILED = re.compile(r'✘ Test (?:"[^"]+"|\S+?\()|error: \S+ : ')


def run(arguments, seconds, until=None):
    """The exit code and what was printed; -1 after `seconds`. Ends at the first line that `until` matches, with what it began."""
    process = subprocess.Popen(
        arguments, cwd=COPY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True
    )
    alarm = threading.Timer(seconds, stop, [process])
    alarm.start()
    lines = []
    try:
        for line in process.stdout:
            lines.append(line)
            if until and until.search(line):
                stop(process)
                break
        late = not alarm.is_alive()
        code = process.wait()
    finally:
        alarm.cancel()
    return -1 if late else code, "".join(lines)


def stop(process):
    """Kills its session: tests run in process groups of their own."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getsid(int(name)) == process.pid:
                os.kill(int(name), signal.SIGKILL)
        except ProcessLookupError:
            pass


def refresh(paths):
    """SwiftPM looks at times: what was put back must count as changed, and so must whoever inlines it."""
    now = time.time()
    for path in paths:
        os.utime(os.path.join(COPY, path), (now, now))


def caught_by(text):
    names = re.findall(r'✘ Test ("[^"]+"|\S+?(?=\())', text) + re.findall(r"error: (\S+) : ", text)
    crash = re.search(r"(Fatal error[^\n]*|Signal \d+|precondition[^\n]*)", text)
    return list(dict.fromkeys(names)) or ([crash.group(1)] if crash else [])


def judge(mutant, steps):
    path = os.path.join(COPY, mutant["file"])
    with open(path) as file:
        original = file.read()
    if original.count(mutant["find"]) != 1:
        return "STALE", "its text is not in the source once"
    with open(path, "w") as file:
        file.write(original.replace(mutant["find"], mutant["replace"]))
    try:
        code, text = run([SWIFT, "build", "--build-tests"], 1500)
        if code != 0:
            errors = re.findall(r"error: ([^\n]*)", text)
            return "DOES NOT COMPILE", errors[0] if errors else text[-300:]
        for step, seconds in steps:
            # What many processes do at once is judged by all of its tests: one may have failed by itself.
            until = FAILED if step == STEPS[0][0] else None
            code, text = run([SWIFT, "test", "--skip-build", "--filter", step], seconds, until)
            by = ", ".join(caught_by(text)[:3])
            if code != 0 and by:
                return "caught", by
            if code != 0:
                return "NO ANSWER", f"the run ended with {code} and names no test"
        return "SURVIVED", mutant["breaks"]
    finally:
        with open(path, "w") as file:
            file.write(original)
        refresh([mutant["file"]])


def main():
    with open(os.path.join(HERE, "mutations.json")) as file:
        mutants = json.load(file)
    options = [argument for argument in sys.argv[1:] if argument.startswith("--")]
    wanted = [argument for argument in sys.argv[1:] if argument not in options]
    unknown = {*options} - {"--quick", "--known-green"} | {*wanted} - {mutant["name"] for mutant in mutants}
    if unknown:
        print(__doc__ if "--help" in unknown else f"unknown: {' '.join(sorted(unknown))}; see --help")
        return 0 if "--help" in unknown else 64
    steps = STEPS[:1] if "--quick" in options else STEPS
    mutants = [mutant for mutant in mutants if not wanted or mutant["name"] in wanted]
    os.makedirs(COPY, exist_ok=True)
    for name in ("Sources", "Tests", "Resources"):
        shutil.rmtree(os.path.join(COPY, name), ignore_errors=True)
        shutil.copytree(os.path.join(ROOT, name), os.path.join(COPY, name))
    for name in ("Package.swift", "Package.resolved", "README.md", "Makefile"):
        if os.path.exists(os.path.join(ROOT, name)):
            shutil.copy2(os.path.join(ROOT, name), os.path.join(COPY, name))
    # A suite that is red by itself would catch everything.
    code, text = run([SWIFT, "build", "--build-tests"], 3000)
    for step, seconds in () if "--known-green" in options else steps:
        if code == 0:
            code, text = run([SWIFT, "test", "--skip-build", "--filter", step], seconds)
    if code != 0:
        print("without any bug the suite is red: " + ", ".join(caught_by(text)[:5]))
        return 1
    failures = 0
    for mutant in mutants:
        began = time.time()
        verdict, by = judge(mutant, steps)
        failures += verdict != "caught"
        print(f"{mutant['invariant']} {mutant['name']}: {verdict} ({by}), {time.time() - began:.0f} s", flush=True)
    print(f"{len(mutants) - failures} of {len(mutants)} were caught")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
