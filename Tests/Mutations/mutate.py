"""Injects the bugs of mutations.json, one at a time, and prints which test catches each bug.

usage: mutate.py [--quick] [--known-green] [NAME...]

Each bug is built in a copy of the checkout with a separate build folder. The suite runs in two steps. The quick targets run first, and the
end-to-end tests run only if the quick targets do not catch the bug. Both steps must pass without any bug. A bug is caught if a test fails or
the test process crashes. A run that only exceeds its time limit does not catch the bug. The script fails if a bug is not caught, does not
compile, or does not match the source exactly once. `--quick` runs only the first step. `--known-green` skips the run without any bug.
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
# Architecture tests are skipped. Architecture tests read the sources as text, and do not run the code with the bug.
STEPS = (("^(?!EndToEndTests|ArchitectureTests|APICompileTests)", 900), ("EndToEndTests", 2400))
SWIFT = os.environ.get("SWIFT", "swift")
# A run of the first step ends at the first line that reports a failed test.
FAILED = re.compile(r'✘ Test (?:"[^"]+"|\S+?\()|error: \S+ : ')


def run(arguments, seconds, until=None):
    """Runs the command. Returns the exit code, or -1 after `seconds`, and the output. The first line that `until` matches ends the run."""
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
    """Kills all processes of the session, because tests run in separate process groups."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getsid(int(name)) == process.pid:
                os.kill(int(name), signal.SIGKILL)
        except ProcessLookupError:
            pass


def refresh(paths):
    """Sets the modification times of restored files, so that SwiftPM rebuilds the files and the code that inlines them."""
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
            # The end-to-end step runs to its end. Many processes run at once, so a test may have failed for a reason other than
            # the bug.
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
    # If a suite fails without any bug, it would seem to find every bug.
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
