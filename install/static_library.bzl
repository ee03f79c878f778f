"""A static library that holds an engine whole, for programs of other build systems."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _static_library_impl(ctx):
    # Archives whose objects register operators when the program starts are taken whole; of others the
    # linker takes what these call.
    whole = {}
    called = {}
    for dep in ctx.attr.deps:
        for linker_input in dep[CcInfo].linking_context.linker_inputs.to_list():
            for library in linker_input.libraries:
                archive = library.pic_static_library or library.static_library
                if archive and library.alwayslink:
                    whole[archive] = True
                elif archive:
                    called[archive] = True
    arguments = ctx.actions.args()
    arguments.add(ctx.outputs.library)
    arguments.add_all(whole.keys())
    arguments.add("--")
    arguments.add_all(called.keys())
    ctx.actions.run(
        mnemonic = "CppStaticLibrary",
        progress_message = "Joining the objects of %s" % ctx.label,
        executable = "/bin/sh",
        arguments = [ctx.file._join.path, arguments],
        inputs = depset(whole.keys() + called.keys() + [ctx.file._join], transitive = [find_cpp_toolchain(ctx).all_files]),
        outputs = [ctx.outputs.library],
        use_default_shell_env = True,
    )

static_library = rule(
    doc = "Makes lib%{name}.a of one object, so that no linker leaves out what registers itself.",
    implementation = _static_library_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "_cc_toolchain": attr.label(default = Label("@bazel_tools//tools/cpp:current_cc_toolchain")),
        "_join": attr.label(
            default = Label("//install:join_objects.sh"),
            allow_single_file = True,
        ),
    },
    outputs = {"library": "lib%{name}.a"},
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
