#!/usr/bin/env python3
"""Files with options of optimization of their own say so by a macro: GCC would take those of a precompiled header
instead (tools/options.bzl). Files that take a precompiled header depend on the headers in it (precompiled/precompiled.bzl)."""
import glob, os, re, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OPTIMIZES = re.compile(r"^-(O\d|f(?!sanitize|profile).*)$")


def own_options(bazelrc):
    """The lines of .bazelrc for single files: their number, and their options."""
    for number, line in enumerate(bazelrc.splitlines(), 1):
        match = re.match(r"build\S* --per_file_copt=[^@]*@(.*)$", line)
        if match:
            yield number, match[1].split(",")


def faults(bazelrc):
    found = []
    for number, options in own_options(bazelrc):
        macro = any(re.match(r"-[UD]WICK_OPTIMIZED", o) for o in options)
        if any(OPTIMIZES.match(o) for o in options) and not macro:
            found.append(number)
    return found


class Options(unittest.TestCase):
    def test_files_name_their_options(self):
        with open(os.path.join(ROOT, ".bazelrc"), encoding="utf-8") as f:
            text = f.read()
        self.assertGreater(len(list(own_options(text))), 5)
        self.assertEqual(faults(text), [])

    def test_a_fault_is_found(self):
        self.assertEqual(faults("build --per_file_copt=a\\.cpp$@-O3,-fno-trapping-math"), [1])
        self.assertEqual(faults("build --per_file_copt=a\\.cpp$@-O3,-DWICK_OPTIMIZED=loops"), [])
        self.assertEqual(faults("build --per_file_copt=a\\.cpp$@-Os"), [])

    def test_files_depend_on_what_is_precompiled(self):
        built = os.path.join(ROOT, "bazel-bin")
        lists = glob.glob(f"{built}/runtime/_objs/*/*.d") + glob.glob(f"{built}/tests/core/_objs/core_test/*.d")
        if not lists:
            self.skipTest("nothing is built")
        for path in lists:
            with open(path, encoding="utf-8") as f:
                self.assertIn(" ir/operator.h", f.read(), path)


if __name__ == "__main__":
    unittest.main()
