#!/usr/bin/env python3
"""Which ten end-to-end tests took longest, of what they wrote down themselves (TEST_TIMES: seconds and name, a line a case).

A test counts as one: the sum of its cases. Waiting for a turn does not count. All other tests together take less than the longest of
these, and the runner does not tell how long each of them took when several run at once.

usage: slowest.py TIMES"""
import sys

seconds, cases = {}, {}
with open(sys.argv[1], encoding="utf-8") as times:
    for line in times:
        duration, test = line.rstrip("\n").split("\t")
        name = test.rsplit("/", 1)[0].removeprefix("EndToEndTests.")
        seconds[name] = seconds.get(name, 0) + float(duration)
        cases[name] = cases.get(name, 0) + 1

print("The ten tests that took longest:")
for test in sorted(seconds, key=seconds.get, reverse=True)[:10]:
    many = f"  ({cases[test]} cases)" if cases[test] > 1 else ""
    print(f"{seconds[test]:8.1f} s  {test}{many}")
