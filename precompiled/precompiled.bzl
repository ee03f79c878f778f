"""Precompiled headers, and the C++ rules that use them with GCC."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("//tools:options.bzl", "COMPARING_LOOPS", "JUMPS", "LOOPS", "SMALL", "TESTS")
load(":joined.bzl", joined_library = "cc_library", joined_test = "cc_test")

# GCC takes the one whose macros are those of the file (//tools:options.bzl).
_VARIANTS = {
    "comparing_loops": COMPARING_LOOPS,
    "jumps": JUMPS,
    "loops": LOOPS,
    "small": SMALL,
    "tests": TESTS,
    "usual": [],
}

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context

    # GCC looks for a header's precompiled form beside it, in a folder when there are several.
    header = ctx.actions.declare_file("use/" + ctx.file.header.basename)
    ctx.actions.expand_template(template = ctx.file.header, output = header, substitutions = {})
    outputs = [header]
    for variant in ctx.attr.variants:
        output = ctx.actions.declare_file("use/%s.gch/%s" % (ctx.file.header.basename, variant))
        outputs.append(output)
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = toolchain,
            user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + _VARIANTS[variant],
            source_file = ctx.file.header.path,
            output_file = output.path,
            use_pic = True,
            quote_include_directories = context.quote_includes,
            system_include_directories = context.system_includes,
            include_directories = context.includes,
            preprocessor_defines = context.defines,
        )
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        )
        ctx.actions.run(
            mnemonic = "CppPrecompile",
            executable = cc_common.get_tool_for_action(
                feature_configuration = features,
                action_name = CPP_COMPILE_ACTION_NAME,
            ),
            # With -MD the form keeps the list of its headers, for -fpch-deps.
            arguments = ["-x", "c++-header", "-MD", "-MF", "/dev/null"] + arguments,
            inputs = depset(
                [ctx.file.header] + ctx.files.included,
                transitive = [context.headers, toolchain.all_files],
            ),
            outputs = [output],
            env = cc_common.get_environment_variables(
                feature_configuration = features,
                action_name = CPP_COMPILE_ACTION_NAME,
                variables = variables,
            ),
        )

    # A file that takes none of the forms reads the header as text, and with it the ones that it includes. One that takes a
    # form names all of these in its list of dependencies (-fpch-deps), so that it is compiled again when one of them changes.
    own = cc_common.create_compilation_context(
        headers = depset(outputs + [ctx.file.header] + ctx.files.included, transitive = [context.headers]),
    )
    return [
        DefaultInfo(files = depset(outputs)),
        CcInfo(compilation_context = own),
    ]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "header": attr.label(allow_single_file = [".h"], mandatory = True),
        "included": attr.label_list(allow_files = [".h"]),
        "variants": attr.string_list(mandatory = True),
        "_cc_toolchain": attr.label(
            default = Label("@bazel_tools//tools/cpp:current_cc_toolchain"),
        ),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def _with_header(arguments):
    """The arguments of a C++ rule, with a precompiled header if it is C++ that knows the engine."""
    if not [dep for dep in arguments.get("deps", []) if dep.startswith("//")]:
        return arguments
    if [source for source in arguments.get("srcs", []) if source.endswith(".c")]:
        return arguments

    # A header that was compiled with other features of the language is not taken.
    copts = str(arguments.get("copts", []))
    if "-fno-rtti" in copts:
        return arguments
    tests = native.package_name().startswith("tests/")
    if "\"-f" in copts or "\"-O" in copts:
        if tests:
            fail("%s: .bazelrc overrides options of optimization in tests, so they stand there" % arguments["name"])
        if "-Os" not in copts and "WICK_OPTIMIZED" not in copts:
            fail("%s: GCC would ignore these options; take a set of //tools:options.bzl" % arguments["name"])
    name = "tests" if tests else "engine"
    result = dict(arguments)
    result["copts"] = arguments.get("copts", []) + select({
        "//core:clang": [],  # which takes no header of GCC's
        "//conditions:default": ["-fpch-deps", "-include", "precompiled/use/%s.h" % name],
    })
    result["deps"] = arguments.get("deps", []) + select({
        "//core:clang": [],
        "//conditions:default": ["//precompiled:" + name],
    })
    return result

def cc_library(**arguments):
    joined_library(**_with_header(arguments))

def cc_binary(testonly = False, tags = [], **arguments):
    """A program. Measurements and checks that are run by hand are built only when they are named."""
    native.cc_binary(
        testonly = testonly,
        tags = tags + (["manual"] if testonly else []),
        **_with_header(arguments)
    )

def cc_test(**arguments):
    joined_test(**_with_header(arguments))
