"""Sentences of the documentation of the other contenders, with their places. Sentences of manual pages are looked up in the
installed pages, so that every quotation is exact."""
import re
import subprocess

# The documentation of release 0.10.4, which introduced workmanager_linux 0.1.1. The quoted sentences contain no markup.
LINUX = "https://github.com/fluttercommunity/flutter_workmanager/blob/main/docs/linux.mdx"

# Each entry is key: (page or URL, place on the page, sentence).
QUOTES = {
    "timer.persistent": ("systemd.timer(5)", "Persistent=",
                         "Note that this setting only has an effect on timers configured with OnCalendar=."),
    "timer.triggered": ("systemd.timer(5)", "Persistent=", "If true, the time when the service unit was last triggered is stored on disk."),
    "timer.startup": ("systemd.timer(5)", "OnStartupSec=", "Defines a timer relative to when the service manager was first started."),
    "timer.accuracy": ("systemd.timer(5)", "AccuracySec=", "Specify the accuracy the timer shall elapse with. Defaults to 1min."),
    "time.range": ("systemd.time(7)", "CALENDAR EVENTS", "Calendar events may be used to refer to one or more points in time in a single expression."),
    "unit.before": ("systemd.unit(5)", "Conditions and Asserts",
                    "Before the unit is started, systemd will verify that the specified conditions and asserts are true."),
    "service.condition": ("systemd.service(5)", "ExecCondition=",
                          "when an ExecCondition= command exits with exit code 1 through 254 (inclusive), the remaining commands are skipped and the unit is not marked as failed."),
    "service.oneshot": ("systemd.service(5)", "TimeoutStartSec=",
                        "except when Type=oneshot is used, in which case the timeout is disabled by default"),
    "systemctl.kill": ("systemctl(1)", "kill", "Send a signal to one or more processes of the unit."),
    "cron.minute": ("cron(8)", "NOTES", "checking each command to see if it should be run in the current minute."),
    "cron.zone": ("cron(8)", "ENVIRONMENT", "cron will only handle tasks in a single timezone."),
    "cron.fields": ("crontab(5)", "DESCRIPTION", "Commands are executed by cron(8) when the minute, hour, and month of year fields match the current time"),
    "crontab.list": ("crontab(1)", "-l", "The -l option causes the current crontab to be displayed on standard output."),
    "crontab.remove": ("crontab(1)", "-r", "The -r option causes the current crontab to be removed."),
    "anacron.delay": ("anacron(8)", "DESCRIPTION", "Each job entry specifies a period in days, a delay in minutes, a unique job identifier, and a shell command."),
    "nohup": ("nohup(1)", "DESCRIPTION", "Run COMMAND, ignoring hangup signals."),
    "nohup.output": ("nohup(1)", "DESCRIPTION", "If standard output is a terminal, append output to 'nohup.out' if possible"),
    "sleep": ("sleep(1)", "DESCRIPTION", "Pause for NUMBER seconds."),
    "curl.continue": ("curl(1)", "-C, --continue-at",
                      "Use \"-C -\" to tell curl to automatically find out where/how to resume the transfer. It then uses the given output/input files to figure that out."),
    "curl.output": ("curl(1)", "-o, --output", "Write output to <file> instead of stdout."),
    "curl.upload": ("curl(1)", "-T, --upload-file", "This transfers the specified local file to the remote URL."),
    "notify.action": ("notify-send(1)", "-A, --action", "Implies --wait to wait for user input."),
    "notify.wait": ("notify-send(1)", "-w, --wait", "Wait for the notification to be closed before exiting."),
    "notify.replace": ("notify-send(1)", "-r, --replace-id", "The ID of the notification to replace."),
    "wm.constraints": (LINUX, "Honest limitations", "Constraints are accepted but ignored (networkType, requiresCharging, ...). No battery/AC/network gating in v1."),
    "wm.backoff": (LINUX, "Honest limitations",
                   "Backoff policy is accepted but ignored — failed one-off tasks are not retried; a failed periodic task just waits for the next interval."),
    "wm.transient": (LINUX, "How it works", "Transient units vanish after the task ran."),
    "wm.periodic": (LINUX, "How it works", "OnUnitActiveSec drives the frequency, OnStartupSec the initial delay"),
    "wm.catch-up": (LINUX, "How it works", "Persistent=true provides WorkManager-style catch-up of runs missed while the system was off."),
    "wm.testing": (LINUX, "Testing", "workmanager_linux is pure Dart with an injectable process runner, so the whole test suite runs anywhere — no systemd needed"),
}


def plain(text):
    """Returns the text as one line, without hyphenation and bold letters."""
    text = re.sub(r".\x08", "", text).replace("‐\n", "").replace("’", "'").replace("‘", "'")
    text = re.sub(r"-\n\s+(?=[a-z])", "", text)
    return re.sub(r"\s+", " ", text)


def page(name):
    """Returns the text of an installed manual page."""
    title, section = name.rstrip(")").split("(")
    done = subprocess.run(["man", "--no-hyphenation", "--no-justification", section, title], capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "MANWIDTH": "1000", "LC_ALL": "C.UTF-8", "MANPAGER": "cat"})
    return plain(done.stdout) if done.returncode == 0 else None


def missing():
    """Returns the sentences that are missing at their places, and the pages that are not installed."""
    found, pages = [], {}
    for key, (source, _, sentence) in QUOTES.items():
        if not source.endswith(")"):
            continue
        if source not in pages:
            pages[source] = page(source)
        if pages[source] is None:
            found.append(f"{source} is not installed")
        elif plain(sentence) not in pages[source]:
            found.append(f"{key}: \"{sentence}\" is not in {source}")
    return found


def cited(key):
    source, place, sentence = QUOTES[key]
    where = f"[{place}]({source})" if source.startswith("https:") else f"{source}, {place}"
    # If a page would read a character as markup, the character is escaped.
    return f"The documentation states \"{sentence.replace('<', '&lt;').replace('*', chr(92) + '*')}\" ({where})."


if __name__ == "__main__":
    print("\n".join(missing()) or "every sentence stands where it is said to stand")
