"""Makes the page of the documentation."""
from behaviours import ORDER
from contenders import CONTENDERS
from documentation import cited

WAYS = {
    "systemd": "a timer with `OnCalendar=`, `Persistent=true` and `AccuracySec=1us`, and a service of `Type=oneshot` with `Restart=on-failure`. "
               "The service uses `ExecCondition=` for conditions, and `TimeoutStartSec=` for time limits",
    "cron": "a crontab with `flock -n` against overlapping runs, and with `timeout` for time limits. The program `anacron` runs missed work",
    "nohup": "the command `nohup sh -c 'while …'`, which checks the time twice a second and repeats failed work",
    "workmanager": "the units and commands of version 0.1.1, which an app cannot extend",
    "stormy": "the command `stormy schedule`, and two apps that use the API, `proving-ground` and `courier-example`",
}


def page(every, results, facts):
    """Returns the page. `results` are by key and name, and `facts` are the day, the versions and the minutes."""
    notes = []

    def cell(key, name):
        result = results[key, name]
        if result.verdict == "held":
            return "yes"
        # The names of commands are not changed.
        is_name = result.seen.startswith(("systemd-", "nohup", "list-timers"))
        text = f"{result.seen if is_name else result.seen[:1].upper() + result.seen[1:]}. " if result.seen else ""
        note = text.replace("|", "\\|") + (cited(result.citation) if result.citation else "")
        if note not in notes:
            notes.append(note)
        word = {"not held": "no", "none": "–", "failed": "?"}[result.verdict]
        return f"{word} ({notes.index(note) + 1})"

    lines, group = [], None
    for key, behaviour in every.items():
        if behaviour.group != group:
            group = behaviour.group
            lines.append(f"| **{group}** |" + " |" * len(ORDER))
        lines.append(f"| {behaviour.title} | " + " | ".join(cell(key, name) for name in ORDER) + " |")
    counts = " | ".join(str(sum(results[key, name].verdict == "held" for key in every)) for name in ORDER)
    lines.append(f"| **Behaviours that work, of {len(every)}** | {counts} |")
    return "\n".join([
        "# Compared with other schedulers", "",
        "Compares Stormy with four other schedulers of background work on a Linux desktop. A test tries each behaviour with each of these schedulers.", "",
        "## Overview", "",
        f"The command `make compare` measured this page on {facts['day']} (`Tests/Laboratory/Compare/compare.py --write`, {facts['minutes']:.0f} minutes).",
        "Each trial has separate mounts, a separate cgroup and a separate user manager. In the table, \"yes\" and \"no\" are results of a trial. The sign",
        "\"–\" means that the scheduler does not have this function, according to the cited documentation. If the result is \"no\", a note contains the result",
        "of the trial and a quotation from the documentation. The quotation confirms the result, or describes what the scheduler does instead. If the",
        "sign is \"–\", the note contains only a quotation.", "",
        f"The tested versions are {facts['versions']}.", "",
        *(f"- **{CONTENDERS[name].title}**: {WAYS[name]}." for name in ORDER), "",
        "A scheduler has a behaviour only if the user does not need to write code for the behaviour in the job. The programs `curl` (with the options",
        "`-C -` and `--retry`), `flock`, `timeout` and `notify-send` are permitted in the job of each scheduler. To simulate a power cut, the test kills",
        "every process of the trial. To simulate sleep, the test stops every process (SIGSTOP) at the due time, because a test cannot cause real sleep.",
        "The test double python3-dbusmock replaces the services UPower and NetworkManager, and reports power, network and metered networks. The systemd timer",
        "reads these reports in an `ExecCondition=`, because the setting `ConditionACPower=` reads the real power supply from /sys.", "",
        "| | " + " | ".join(CONTENDERS[name].title for name in ORDER) + " |",
        "|---" * (len(ORDER) + 1) + "|", *lines, "",
        *(f"{number}. {note}" for number, note in enumerate(notes, 1)), ""])
