"""The extension module as a shared library."""

def extension_module(name, deps = [], module_map = Label("//python:module.map"), **kwargs):
    """Links //python:extension.

    Args:
      name: of the rule and of the file.
      deps: further libraries.
      module_map: the version script with the names that it exports.
      **kwargs: as cc_binary's.
    """
    native.cc_binary(
        name = name,
        additional_linker_inputs = [module_map],
        # GNU's linker takes archives, not the objects in them.
        features = ["-supports_start_end_lib"],
        linkopts = [
            "-fuse-ld=bfd",
            "-Wl,--version-script=$(location %s)" % module_map,
            "-Wl,-Bsymbolic-functions",
            "-Wl,--as-needed",
            "-Wl,--gc-sections",
            "-Wl,-s",
            # The libraries of a wheel, for this module and for what they need in turn.
            "-Wl,--disable-new-dtags",
            "-Wl,-rpath,$$ORIGIN/lib",
        ],
        linkshared = 1,
        deps = [Label("//python:extension")] + deps,
        **kwargs
    )
