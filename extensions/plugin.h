// Libraries that are loaded while the program runs and add operators and classes (extension.h).
//
//   #include <wick/wick.h>
//   static void define() {
//     wick::Extension extension("mylib");
//     …
//     extension.add();
//   }
//   WICK_PLUGIN("mylib", define)
//
// Built as a shared library against Wick's headers, not linked with the engine: it finds the engine
// in the program that loads it. In C the same is capi/wick.h's wick_plugin.
#pragma once

#include <string>

#include "capi/wick.h"
#include "core/version.h"

#pragma GCC visibility push(default)

namespace wick {

// Loads the library and lets it add what it has; once for each library, a second time does nothing.
// It is never unloaded. LoadError when the file cannot be loaded, is no plugin, was built for another
// version, or cannot add what it has: a name is taken, a schema cannot be read. A plugin is code
// that runs with all rights of the process: load none that you would not run. Thread-safe.
void loadPlugin(const std::string& path);

namespace detail {
// Runs what a plugin defines; its entry calls this.
wick_status addPlugin(void (*define)()) noexcept;
// Tells loadPlugin what failed in C on this thread; set by the interface for C.
void setPluginErrorSource(const char* (*source)());
}  // namespace detail

}  // namespace wick

#pragma GCC visibility pop

// "0.1", of these headers, not of the engine that is running: C++ needs the same first two numbers.
#define WICK_HEADER_TEXT_OF(number) #number
#define WICK_HEADER_TEXT(number) WICK_HEADER_TEXT_OF(number)
#define WICK_HEADER_VERSION \
  WICK_HEADER_TEXT(WICK_VERSION_MAJOR) "." WICK_HEADER_TEXT(WICK_VERSION_MINOR)

#define WICK_PLUGIN(plugin_name, define)                                                   \
  extern "C" WICK_API const wick_plugin* wick_plugin_entry(void);                          \
  extern "C" WICK_API const wick_plugin* wick_plugin_entry(void) {                         \
    static const wick_plugin plugin = {WICK_PLUGIN_ABI, plugin_name, WICK_HEADER_VERSION,  \
                                       [] { return ::wick::detail::addPlugin(&define); }}; \
    return &plugin;                                                                        \
  }
