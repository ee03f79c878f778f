#!/usr/bin/env python3
"""tools/check_docs.py finds each kind of fault, and nothing in documents without any."""
import os, sys, tempfile, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tools"))
import check_docs  # noqa: E402

# A small repository without faults.
GOOD = {
    "README.md": """# Small

See [how](docs/embedding.md#what-goes-wrong), `core/values.cpp` and `bazel build //core:values`.
""",
    "docs/cli.md": """| command | does |
| --- | --- |
| `run FILE [--fast]` | runs |
| `show FILE` | shows |

    torchscript-cli run FILE --fast --limit 3
""",
    "CONTRIBUTING.md": "One file `tools/verb_NAME.cpp`, and `values.cpp`. `bazel-bin/core/values` is what comes out.\n",
    "docs/embedding.md": """## What goes wrong!

| class | meaning |
| --- | --- |
| `Error` | all |
| `LoadError` | a file |
""",
    "docs/environment.md": "| variable | values | meaning |\n| --- | --- | --- |\n| `WICK_SPEED` | a number | how fast |\n"
                           "| `RANK` | a number | which |\n",
    "core/BUILD": 'cc_library(name = "values", srcs = ["values.cpp"])\n',
    "core/values.cpp": '// getenv("WICK_OLD") was here.\nint a = number(std::getenv("WICK_SPEED"));\n',
    "core/ranks.cpp": 'int number(const char* name) { return parse(std::getenv(name)); }\nint rank() { return number("RANK"); }\n',
    "core/error_types.h": "class Error : public std::exception {\n};\nclass LoadError : public Error {\n};\n",
    "tools/verb_run.cpp": "",
    "tools/options.cpp": """void addLimits(CLI::App& verb, Options& options) {
  verb.add_option("--limit", options.limit, "seconds")->check(CLI::Range(1, 2));
}

void defineVerbs(CLI::App& app, Options& options) {
  const auto verb = [&](void (*which)(const Options&), const char* name, const char* help) {
    CLI::App* sub = app.add_subcommand(name, help);
    addLimits(*sub, options);
    return sub;
  };
  CLI::App* run = verb(runVerb, "run", "run it");
  run->add_flag("--fast", options.fast,
                "without waiting");
  app.add_subcommand("show", "show it")->callback([] {});
}
""",
}


def faults(**changed):
    """What is found when files (`docs__x_md` for docs/x.md) end with further text, or parts of them are others."""
    files = dict(GOOD)
    for key, change in changed.items():
        path = next(p for p in files if p.replace("/", "__").replace(".", "_") == key)
        files[path] = files[path].replace(*change) if isinstance(change, tuple) else files[path] + change
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)) or root, exist_ok=True)
            with open(os.path.join(root, path), "w") as file:
                file.write(text)
        return check_docs.faults(root)


class CheckDocs(unittest.TestCase):
    def assertFinds(self, path, line, message, **changed):
        found = faults(**changed)
        self.assertTrue(any(f[0] == path and f[1] == line and message in f[2] for f in found), found)
        self.assertEqual(len(found), 1, found)

    def test_nothing_is_found_where_nothing_is_wrong(self):
        self.assertEqual(faults(), [])

    def test_paths(self):
        self.assertFinds("docs/embedding.md", 7, "core/gone.h", docs__embedding_md="`core/gone.h`\n")
        self.assertFinds("docs/embedding.md", 7, "core/old/", docs__embedding_md="see core/old/\n")
        self.assertFinds("docs/embedding.md", 7, "gone.cpp", docs__embedding_md="`gone.cpp`\n")
        self.assertFinds("docs/embedding.md", 7, "tools/NAME.cc", docs__embedding_md="`tools/NAME.cc`\n")

    def test_places(self):
        self.assertFinds("docs/embedding.md", 7, "has no other", docs__embedding_md="`core/ranks.cpp: other`\n")
        self.assertFinds("docs/embedding.md", 7, "has no A::rank", docs__embedding_md="`core/ranks.cpp: A::rank`\n")
        self.assertEqual(faults(docs__embedding_md="`core/ranks.cpp: rank`\n"), [])

    def test_targets(self):
        self.assertFinds("docs/embedding.md", 7, "//core:gone", docs__embedding_md="`//core:gone`\n")
        self.assertFinds("docs/embedding.md", 7, "//gone", docs__embedding_md="`bazel test //gone/...`\n")
        self.assertFinds("docs/embedding.md", 7, "bazel-bin/core/gone", docs__embedding_md="`bazel-bin/core/gone`\n")

    def test_links(self):
        self.assertFinds("docs/embedding.md", 7, "leads nowhere", docs__embedding_md="[x](gone.md)\n")
        self.assertFinds("docs/embedding.md", 7, "no such heading", docs__embedding_md="[x](../README.md#gone)\n")

    def test_references(self):
        self.assertFinds("core/ranks.cpp", 3, "no such page", core__ranks_cpp="// docs/gone.md tells why.\n")
        self.assertFinds("core/ranks.cpp", 3, "no heading Gone", core__ranks_cpp='// docs/embedding.md, "Gone"\n')

    def test_verbs(self):
        self.assertFinds("tools/options.cpp", 14, "show 0 times", docs__cli_md=("| `show FILE` | shows |\n", ""))
        self.assertFinds("docs/cli.md", 5, "no verb fly", docs__cli_md=("| shows |\n", "| shows |\n| `fly` | flies |\n"))
        self.assertFinds("tools/options.cpp", 14, "show 2 times",
                         docs__cli_md=("| `show FILE` | shows |\n", "| `show FILE` | shows |\n| `show` | again |\n"))

    def test_flags(self):
        self.assertFinds("docs/cli.md", 3, "run has no flag --slow", docs__cli_md=("[--fast]", "[--slow]"))
        self.assertFinds("docs/embedding.md", 8, "no verb fly", docs__embedding_md="torchscript-cli flies\n`torchscript-cli fly`\n")
        self.assertFinds("docs/embedding.md", 7, "show has no flag --fast",
                         docs__embedding_md="`torchscript-cli show x --fast`\n")
        self.assertFinds("docs/embedding.md", 7, "no program has a flag --gone", docs__embedding_md="with `--gone`\n")
        self.assertFinds("tools/options.cpp", 2, "--limit has no help", tools__options_cpp=('"seconds"', '""'))

    def test_variables(self):
        self.assertFinds("core/values.cpp", 3, "does not list WICK_NEW", core__values_cpp='x = getenv("WICK_NEW");\n')
        self.assertFinds("core/ranks.cpp", 3, "does not list SIZE", core__ranks_cpp='y = number("SIZE");\n')
        self.assertFinds("docs/environment.md", 5, "no code reads WICK_OLD",
                         docs__environment_md="| `WICK_OLD` | a | b |\n")
        self.assertFinds("docs/environment.md", 5, "listed twice", docs__environment_md="| `RANK` | a | b |\n")
        self.assertFinds("docs/environment.md", 4, "has no sentence", docs__environment_md=("| which |", "| |"))
        self.assertFinds("docs/embedding.md", 7, "alone", docs__embedding_md="| `RANK` | a | b |\n")
        self.assertFinds("docs/embedding.md", 7, "no code reads WICK_GONE", docs__embedding_md="`WICK_GONE=off`\n")

    def test_errors(self):
        self.assertFinds("core/error_types.h", 3, "LoadError 0 times", docs__embedding_md=("| `LoadError` | a file |\n", ""))
        self.assertFinds("core/error_types.h", 3, "LoadError 2 times", docs__embedding_md="| `LoadError` | more |\n")
        self.assertFinds("docs/embedding.md", 7, "no class OldError", docs__embedding_md="| `OldError` | old |\n")

    def test_lines_in_blocks_are_code(self):
        self.assertEqual(faults(docs__embedding_md="```cpp\nx[0](gone.md);\n```\n"), [])


if __name__ == "__main__":
    unittest.main()
