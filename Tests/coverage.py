"""Prints how many lines of each pure module the tests reach. The script does not fail if a number is low.

usage: coverage.py SCRATCH_FOLDER
"""

import glob
import json
import os
import sys

PURE = ["BackgroundScheduling", "TransferMachines", "BackgroundNotices", "StormyWeather"]


def main():
    paths = glob.glob(os.path.join(sys.argv[1], "**", "codecov", "*.json"), recursive=True)
    if not paths:
        print("no coverage was recorded")
        return 1
    with open(paths[0]) as file:
        files = json.load(file)["data"][0]["files"]
    print("| module | lines | reached | files least reached |\n| --- | --- | --- | --- |")
    for module in PURE:
        own = [entry for entry in files if f"/{module}/" in entry["filename"]]
        lines = sum(entry["summary"]["lines"]["count"] for entry in own)
        covered = sum(entry["summary"]["lines"]["covered"] for entry in own)
        least = sorted(own, key=lambda entry: entry["summary"]["lines"]["percent"])[:2]
        names = ", ".join(
            f"{os.path.basename(entry['filename'])} {entry['summary']['lines']['percent']:.0f} %" for entry in least)
        print(f"| `{module}` | {lines} | {100 * covered / max(1, lines):.1f} % | {names} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
