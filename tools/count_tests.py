#!/usr/bin/env python3
"""Sums up the test logs that Bazel left: prints the failed cases and a last line "N passed, N failed, N skipped".

usage: count_tests.py BAZEL_TESTLOGS
"""
import os
import sys
import xml.etree.ElementTree as ElementTree


def main():
    passed = failed = skipped = 0
    for folder, _, files in os.walk(sys.argv[1]):
        if "test.xml" not in files:
            continue
        target = os.path.relpath(folder, sys.argv[1])
        try:
            cases = list(ElementTree.parse(os.path.join(folder, "test.xml")).getroot().iter("testcase"))
        except ElementTree.ParseError:
            cases = []
        if not cases:
            print(f"no readable result of //{target}")
            failed += 1
        for case in cases:
            if case.find("failure") is not None or case.find("error") is not None:
                print(f"failed: //{target} {case.get('classname')}.{case.get('name')}")
                failed += 1
            elif case.find("skipped") is not None or case.get("status") == "notrun":
                skipped += 1
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed or not passed else 0)


main()
