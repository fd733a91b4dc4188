"""The page of the documentation."""
from behaviours import ORDER
from contenders import CONTENDERS
from documentation import cited

WAYS = {
    "systemd": "a timer with `OnCalendar=`, `Persistent=true` and `AccuracySec=1us`, and a service of `Type=oneshot` with `Restart=on-failure`; "
               "`ExecCondition=` where it depends on something, `TimeoutStartSec=` where it is limited",
    "cron": "a crontab, with `flock -n` where runs could overlap and `timeout` where they are limited; `anacron` for what was missed",
    "nohup": "`nohup sh -c 'while …'`, which looks twice a second whether it is time, and tries again what failed",
    "workmanager": "the units and commands of version 0.1.1, to which an app can add nothing",
    "stormy": "`stormy schedule`, and two apps with the API: `proving-ground` and `courier-example`",
}


def page(every, results, facts):
    """`results`: by (key, name); `facts`: day, versions, minutes."""
    notes = []

    def cell(key, name):
        result = results[key, name]
        if result.verdict == "held":
            return "yes"
        # The names of commands stay as they are.
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
    lines.append(f"| **held, of {len(every)}** | {counts} |")
    return "\n".join([
        "# Beside the others", "",
        "What else runs work in the background on a Linux desktop, and what becomes of it: each behaviour really tried for each of five.", "",
        "## Overview", "",
        f"Measured on {facts['day']} with `make compare` (`Tests/Laboratory/Compare/compare.py --write`, {facts['minutes']:.0f} minutes): each trial on mounts, in a cgroup and "
        "under a user manager of its own. \"yes\" and \"no\"",
        "come from a run; \"–\" is no mechanism, by the documentation that is cited. The notes below the table say what was seen, and which sentence of the",
        "documentation says so, or says what is done instead.", "",
        f"The versions: {facts['versions']}.", "",
        *(f"- **{CONTENDERS[name].title}**: {WAYS[name]}." for name in ORDER), "",
        "What a person programs in the job itself counts for nobody; `curl` (with `-C -` and `--retry`), `flock`, `timeout` and `notify-send` count for all of",
        "them. A power cut is SIGKILL for every process of the trial; sleep is SIGSTOP over the due moment, as no test can bring it about; power, network and cost are",
        "UPower and NetworkManager as python3-dbusmock plays them, which for systemd an `ExecCondition=` asks, as `ConditionACPower=` reads /sys.", "",
        "| | " + " | ".join(CONTENDERS[name].title for name in ORDER) + " |",
        "|---" * (len(ORDER) + 1) + "|", *lines, "",
        *(f"{number}. {note}" for number, note in enumerate(notes, 1)), ""])
