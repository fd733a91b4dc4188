#!/usr/bin/env python3
"""Counts sentences that are hard to read, by area, and compares them with the limits in words.json. A limit may only fall.

usage: words.py            check the limits (part of `make lint`)
       words.py --show N   also print N marked sentences of each area
       words.py --write    write the current counts, rounded up, as the limits

A sentence is marked if it has one of the phrases below. The phrases are the ones that readers of this project had to read twice. Code blocks,
tables and text in backticks do not count."""
import json, math, pathlib, re, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMITS = ROOT / "Tests/Documentation/words.json"

PHRASES = re.compile("|".join([
    # Actors that are not named.
    r"\b(?:nobody|no-one|somebody|anybody|whoever|whomever)\b", r"\b(?:a|the) person(?:'s)?\b",
    # Verbs of speaking and listening, whose subject is a program.
    r"\b(?:is|are|was|were|be|been) (?:said|told|heard|spoken)\b", r"\b(?:says|tells|hears) (?:of|so|nobody|nothing|where|why|it)\b",
    # Verbs of standing, lying, leaving and returning, whose subject is a thing.
    r"\b(?:stands|lies) (?:in|on|at|there|still|by|beside)\b", r"\b(?:goes|go|went) on\b", r"\b(?:comes|come|came) back\b",
    r"\blets? go\b", r"\b(?:made|makes|make) up for\b", r"\btakes back\b",
    # Old or rare words.
    r"\b(?:anew|in vain|for good|all the same|whereby|thereby|hence|thus)\b", r"\bmeanwhile\b",
    # Pronouns that replace nouns, and negated nouns.
    r"\b(?:that|those) of\b", r"\bof (?:its|their) own\b", r"\b(?:is|are|was|were) no (?!longer\b)[a-z]+\b", r"\b(?:to|of|for) whom\b",
    r", (?:say|too)(?=[.,;:]|$)",
]), re.I)
# A sentence without its subject.
HEADLESS = re.compile(r"^(?:Of|As|Where|What|Whatever|Whose) [a-z]")


def files(*patterns: str) -> list[str]:
    output = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in output.split("\0") if path]


def sentences(text: str):
    text = re.sub(r"`[^`]*`", "X", text)
    for sentence in re.split(r"(?<=[.!?;])\s+|\n\s*\n", text):
        sentence = re.sub(r"\s+", " ", sentence).strip(" -*#>|")
        if len(re.findall(r"[A-Za-z]{2,}", sentence)) >= 4:
            yield sentence


def of_page(text: str):
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    text = re.sub(r"^[|#].*$", "", text, flags=re.M)
    yield from sentences(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text))


def of_swift(text: str):
    """Yields (area, sentence): documentation of public symbols, other comments, messages, and names of tests."""
    lines = text.split("\n") + [""]
    comment, mark = [], ""
    for line in lines:
        match = re.match(r"\s*(///?)\s?(.*)$", line)
        if match and (not comment or match[1] == mark):
            comment.append(match[2])
            mark = match[1]
            continue
        if comment:
            is_public = mark == "///" and re.match(r"\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:public|open|case)\b", line)
            for sentence in sentences("\n".join(comment)):
                yield ("public" if is_public else "comments"), sentence
            comment, mark = ([match[2]], match[1]) if match else ([], "")
            if match:
                continue
        for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', line.split(" //")[0]):
            for sentence in sentences(re.sub(r"\\\([^()]*(?:\([^()]*\)[^()]*)*\)", "X", literal)):
                yield "messages", sentence
        for name in re.findall(r"func `([^`]+)`", line):
            yield "names", name[0].upper() + name[1:] + "."


def collect() -> dict[str, list[tuple[str, str]]]:
    areas: dict[str, list[tuple[str, str]]] = {}
    for path in files("*.md", "*.swift", "*.py", "*.sh", "Makefile", ".ci/run"):
        text = (ROOT / path).read_text(errors="replace")
        is_test = path.startswith("Tests/")
        if path.endswith(".md"):
            found = [("readme" if path == "README.md" else "pages", sentence) for sentence in of_page(text)]
        elif path.endswith(".swift"):
            found = [("tests" if is_test else area, sentence) for area, sentence in of_swift(text) if not (is_test and area == "messages")]
        else:
            notes = re.sub(r"(?m)^\s*#+ ?", "", "\n".join(re.findall(r"(?m)^\s*#(?!!).*$", text)))
            found = [("scripts", sentence) for sentence in sentences(notes + "\n\n" + "\n\n".join(re.findall(r'"""(.*?)"""', text, re.S)))]
        for area, sentence in found:
            areas.setdefault(area, []).append((path, sentence))
    return areas


def is_marked(sentence: str) -> bool:
    return bool(PHRASES.search(sentence) or HEADLESS.search(sentence))


def parent_limits() -> dict[str, float]:
    """The limits of the first parent, or none in a checkout without history."""
    shown = subprocess.run(
        ["git", "show", f"HEAD^:{LIMITS.relative_to(ROOT)}"], cwd=ROOT, capture_output=True, text=True)
    return json.loads(shown.stdout) if shown.returncode == 0 else {}


def main() -> None:
    areas = collect()
    marked = {area: [found for found in rows if is_marked(found[1])] for area, rows in areas.items()}
    shares = {area: 100 * len(marked[area]) / len(rows) for area, rows in areas.items()}
    if sys.argv[1:] == ["--write"]:
        # This file quotes the phrases itself.
        LIMITS.write_text(json.dumps({area: math.ceil(share * 10) / 10 for area, share in sorted(shares.items())}, indent=2) + "\n")
        return
    if sys.argv[1:2] == ["--show"]:
        for area, rows in sorted(marked.items()):
            for path, sentence in rows[: int(sys.argv[2])]:
                print(f"{area}: {path}: {sentence[:180]}")
    limits = json.loads(LIMITS.read_text())
    problems = [f"{area}: {shares[area]:.2f} % of sentences are marked, the limit is {limits.get(area, 0)} %"
                for area in sorted(shares) if shares[area] > limits.get(area, 0)]
    problems += [f"{area}: the limit rose from {before} to {limits[area]} %"
                 for area, before in parent_limits().items() if limits.get(area, 0) > before]
    for problem in problems:
        print(f"words.py: {problem} (words.py --show 20 lists them)")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
