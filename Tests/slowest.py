#!/usr/bin/env python3
"""Prints the ten end-to-end tests that took longest. TIMES is the file that the tests write: seconds and name, one line for each case.

The time of a test is the sum of its cases, without the time that a case waits for its turn. Other tests are not measured. Together, they
take less time than the longest end-to-end test. The runner does not report the time of each test if several tests run at once.

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
