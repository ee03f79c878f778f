"""Sources of the runtime, which the command writes beside a model."""

def literal(name, source):
    """NAME.inc: the text of a file as a literal of C++.

    Args:
      name: of the file that the text is written to.
      source: the file.
    """
    native.genrule(
        name = name.replace(".", "_") + "_text",
        srcs = [source],
        outs = [name + ".inc"],
        # In pieces, because compilers bound the length of a literal.
        cmd = "awk 'BEGIN {print \"R\\\"wick(\"} {print} NR % 150 == 0 {print \")wick\\\" R\\\"wick(\"} END {print \")wick\\\"\"}' $< > $@",
    )
