"""Sources of the runtime, which the command writes beside a model."""

def literals(name, sources):
    """NAME.inc: names and texts of files as `{"a.h", "text"},` of C++.

    Args:
      name: of the rule.
      sources: the files.
    """
    native.genrule(
        name = name,
        srcs = sources,
        outs = [name + ".inc"],
        # In pieces, because compilers bound the length of a literal.
        cmd = """
          for file in $(SRCS); do
            echo "{\\"$$(basename $$file)\\", R\\"wick("
            awk '{print} NR % 150 == 0 {print ")wick\\" R\\"wick("}' $$file
            echo ')wick"},'
          done > $@""",
    )
