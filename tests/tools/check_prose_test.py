#!/usr/bin/env python3
"""tools/check_prose.py counts the habits that may only become fewer, and looks at the subjects of commits."""
import contextlib, io, os, subprocess, sys, tempfile, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tools"))
import check_prose  # noqa: E402


class Folder:
    """A folder with files and a table of counts."""

    def __init__(self, root, table, files):
        self.root = root
        self.files = [name.replace("_", ".") for name in files]
        self.write(check_prose.COUNTS, table)
        for name, text in files.items():
            self.write(name.replace("_", "."), text)

    def write(self, path, text):
        os.makedirs(os.path.dirname(os.path.join(self.root, path)), exist_ok=True)
        with open(os.path.join(self.root, path), "w") as file:
            file.write(text)

    def check(self, update=False):
        self.printed = io.StringIO()
        with contextlib.redirect_stdout(self.printed):
            return check_prose.check(self.root, self.files, update)

    def table(self):
        with open(os.path.join(self.root, check_prose.COUNTS)) as file:
            return [line.rstrip("\n") for line in file if not line.startswith("#")]


def counts(path, text):
    return [len(found) for found in check_prose.finds(check_prose.COUNTED, path, text).values()]


class CheckProse(unittest.TestCase):
    def folder(self, table, **files):
        root = tempfile.TemporaryDirectory()
        self.addCleanup(root.cleanup)
        return Folder(root.name, table, files)

    def test_sentences_that_begin_with_the_words_are_counted(self):
        self.assertEqual(counts("a.cpp", "// Of two sizes the larger.\n// Where `x` stands.\nint Where = 1;\n"), [2, 0])
        self.assertEqual(counts("a.md", "It ends. Those that remain\nand Behind the wall\n"), [2, 0])
        self.assertEqual(counts("a.cpp", 'f("What is left");  // part of it, those too\n'), [1, 0])

    def test_what_is_counts_unless_it_asks(self):
        self.assertEqual(counts("a.h", "// Returns what was read and what is\n// left.\n"), [0, 2])
        self.assertEqual(counts("a.h", "// What is left? And what is not?\n// Says what happens.\n"), [0, 0])

    def test_programs_in_strings_do_not_count(self):
        self.assertEqual(counts("a.cpp", 'run(R"(# Of what is here\n)");\n'), [0, 0])
        self.assertEqual(counts("a.md", "```\nOf what is here\n```\n`Where x`\n"), [0, 0])

    def test_as_many_as_the_table_says_are_allowed(self):
        self.assertEqual(self.folder("a.h 1 1\n", a_h="// Of them, what is left.\n").check(), [])

    def test_one_more_lists_all_of_the_file(self):
        faults = self.folder("a.h 1 0\n", a_h="// Of them.\n\n// Where not.\n").check()
        self.assertEqual(faults, ["a.h: 2 times “begins with”, allowed are 1:", "a.h:1: “begins with”: // Of them.",
                                  "a.h:3: “begins with”: // Where not."])

    def test_a_new_file_may_have_none(self):
        self.assertEqual(self.folder("b.h 5 5\n", a_h="// Returns what is left.\n").check(),
                         ["a.h: 1 times “what is”, allowed are 0:", "a.h:1: “what is”: // Returns what is left."])

    def test_update_lowers_and_never_raises(self):
        folder = self.folder("a.h 3 0\nb.h 1 0\nc.h 2 2\ngone.h 1 1\n", a_h="// Of them.\n", b_h="// Of them, what is left.\n",
                        c_h="// Nothing.\n")
        self.assertEqual(len(folder.check()), 2)
        self.assertIn("--update lowers", folder.printed.getvalue())
        self.assertEqual(len(folder.check(update=True)), 2)
        self.assertEqual(folder.table(), ["a.h 1 0", "b.h 1 0"])

    def test_words_of_the_table_in_contributing_are_still_found(self):
        found = self.folder("", a_h="// The answer, a truth value.\n").check()
        self.assertEqual(found, ["a.h:1: “truth value”: // The answer, a truth value."])


class Subjects(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.git("init", "-q")
        self.commit("Some first subject.")
        self.base = self.git("rev-parse", "HEAD").strip()

    def git(self, *words):
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.folder.name, check=True,
                              capture_output=True, text=True).stdout

    def commit(self, subject):
        self.git("commit", "-q", "--allow-empty", "-m", subject)

    def wrong(self, subject):
        self.commit(subject)
        return "\n".join(check_prose.wrong_subjects(self.folder.name, self.base))

    def test_good_subjects(self):
        for subject in ["serialization: read archives saved on a GPU", "runtime/ops: add twice", "docs, tools: name verbs"]:
            self.assertEqual(self.wrong(subject), "")

    def test_a_subject_without_an_area(self):
        self.assertIn("is not", self.wrong("Read archives saved on a GPU"))

    def test_a_subject_with_a_full_stop(self):
        self.assertIn("is not", self.wrong("docs: name verbs."))

    def test_a_subject_that_is_too_long(self):
        self.assertEqual(self.wrong("docs: " + "word " * 13 + "w"), "")
        self.assertIn("73 characters", self.wrong("docs: " + "word " * 13 + "wo"))

    def test_an_unknown_base_and_no_repository_say_nothing(self):
        self.commit("Anything.")
        self.assertEqual(check_prose.wrong_subjects(self.folder.name, "0" * 40), [])
        with tempfile.TemporaryDirectory() as elsewhere:
            self.assertEqual(check_prose.wrong_subjects(elsewhere, self.base), [])


if __name__ == "__main__":
    unittest.main()
