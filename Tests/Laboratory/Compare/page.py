"""Makes the page of the documentation."""
from behaviours import ORDER
from contenders import CONTENDERS
from documentation import cited

WAYS = {
    "systemd": "a timer with `OnCalendar=`, `Persistent=true` and `AccuracySec=1us`, and a service of `Type=oneshot` with `Restart=on-failure`; "
               "`ExecCondition=` for conditions, `TimeoutStartSec=` for time limits",
    "cron": "a crontab, with `flock -n` against overlapping runs and `timeout` for time limits; `anacron` for missed runs",
    "nohup": "`nohup sh -c 'while …'`, which checks the time twice a second and repeats failed work",
    "workmanager": "the units and commands of version 0.1.1, which an app cannot extend",
    "stormy": "`stormy schedule`, and two apps with the API: `proving-ground` and `courier-example`",
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
        "Compares five ways to run background work on a Linux desktop. A test tries each behaviour with each way.", "",
        "## Overview", "",
        f"`make compare` measured this page on {facts['day']} (`Tests/Laboratory/Compare/compare.py --write`, {facts['minutes']:.0f} minutes).",
        "Each trial has separate mounts, a separate cgroup and a separate user manager. \"yes\" and \"no\" are results of a trial. \"–\" means that",
        "the program does not have this function, according to the cited documentation. A note for \"no\" contains the result, and a quotation from",
        "the documentation. The quotation confirms the result, or describes what the program does instead. A note for \"–\" contains only a quotation.", "",
        f"The tested versions are {facts['versions']}.", "",
        *(f"- **{CONTENDERS[name].title}**: {WAYS[name]}." for name in ORDER), "",
        "A program has a behaviour only if the code of the job does not need to implement the behaviour. A program also has a behaviour if `curl` (with `-C -`",
        "and `--retry`), `flock`, `timeout` or `notify-send` implements the behaviour. To simulate a power cut, the test kills every process of the trial.",
        "To simulate sleep, the test stops every process (SIGSTOP) at the due time, because a test cannot cause real sleep. python3-dbusmock replaces UPower and",
        "NetworkManager, and reports power, network and metered networks. The systemd timer reads these values in an `ExecCondition=`, because",
        "`ConditionACPower=` reads /sys instead.", "",
        "| | " + " | ".join(CONTENDERS[name].title for name in ORDER) + " |",
        "|---" * (len(ORDER) + 1) + "|", *lines, "",
        *(f"{number}. {note}" for number, note in enumerate(notes, 1)), ""])
