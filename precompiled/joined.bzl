"""Several sources compiled as one, which takes half the time: each has the same headers and templates.

Names in anonymous namespaces must therefore differ within a folder; tests have a namespace for each source. Messages of
the compiler and debuggers name the sources themselves.
"""

# A change of one source compiles its unit again: some ten seconds.
_SOURCES_IN_A_UNIT = 8

def _joined_source_impl(ctx):
    ctx.actions.run_shell(
        command = """
          out=$1
          shift
          for source; do
            printf '#line 1 "%s"\\n' "$source"
            cat "$source"
            echo
          done > "$out"
        """,
        arguments = [ctx.outputs.out.path] + [source.path for source in ctx.files.srcs],
        inputs = ctx.files.srcs,
        outputs = [ctx.outputs.out],
        mnemonic = "JoinSources",
        progress_message = "Joining sources of %s" % ctx.label,
    )

_joined_source = rule(
    implementation = _joined_source_impl,
    attrs = {
        "out": attr.output(mandatory = True),
        "srcs": attr.label_list(allow_files = [".cpp"], mandatory = True),
    },
)

def _folder(source):
    return source.rpartition("/")[0]

def _joined(library, sources, apart):
    """Returns the sources of a library for the compiler: as units, except with clang.

    A source is joined with others of its folder, for which the same options hold (.bazelrc).

    Args:
      library: the name of the target.
      sources: its srcs.
      apart: sources that are compiled alone: ones that take long, and ones with options of their own.
    """
    if type(sources) != "list":
        return sources
    for source in apart:
        if source not in sources:
            fail("%s is no source of %s" % (source, library))
    folders = {}
    plain = []
    for source in sorted(sources):
        if source.endswith(".cpp") and source[0] not in "/:@" and source not in apart:
            folders.setdefault(_folder(source), []).append(source)
        else:
            plain.append(source)
    units = []
    single = []
    for folder, members in folders.items():
        count = (len(members) + _SOURCES_IN_A_UNIT - 1) // _SOURCES_IN_A_UNIT
        for i in range(count):
            unit = members[i * len(members) // count:(i + 1) * len(members) // count]
            if len(unit) == 1:
                plain.append(unit[0])
                continue
            out = "%s%s_unit_%d.cpp" % (folder + "/" if folder else "", library, i + 1)
            _joined_source(
                name = out[:-len(".cpp")].replace("/", "_"),
                srcs = unit,
                out = out,
            )
            units.append(out)
            single += unit
    if not units:
        return sources
    return plain + select({
        "//core:clang": single,  # each for itself, so that a missing include is found
        "//conditions:default": units,
    })

def _with_units(arguments):
    """The arguments of a C++ rule, with its sources in units; those of `apart` are compiled alone."""
    result = dict(arguments)
    apart = result.pop("apart", [])
    result["srcs"] = _joined(arguments["name"], arguments.get("srcs", []), apart)

    # GCC takes joined sources for headers, whose types may not have members of unnamed namespaces.
    result["copts"] = arguments.get("copts", []) + select({
        "//core:clang": [],  # which joins none
        "//conditions:default": ["-Wno-subobject-linkage"],
    })
    return result

def cc_library(**arguments):
    native.cc_library(**_with_units(arguments))

def cc_test(**arguments):
    native.cc_test(**_with_units(arguments))
