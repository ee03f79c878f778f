#include "extensions/plugin.h"

#include <dlfcn.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <set>

#include "core/error.h"

namespace wick {

namespace {

std::atomic<const char* (*)()> error_source{nullptr};

// What went wrong in addPlugin on this thread.
std::string& ownError() {
  thread_local std::string text;
  return text;
}

// Closes a library that adds nothing.
class Library {
 public:
  explicit Library(void* handle) : handle_(handle) {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle_) dlclose(handle_);
  }
  void* get() const { return handle_; }
  void keep() { handle_ = nullptr; }

 private:
  void* handle_;
};

void checkVersion(const std::string& path, const wick_plugin* plugin) {
  if (!plugin) throwLoadError("{}: the plugin gives no description of itself", path);
  if (plugin->abi != WICK_PLUGIN_ABI) {
    throwLoadError(
        "{}: the plugin was built for version {} of the interface, this is version {}; "
        "build it with the headers of Wick {}",
        path, plugin->abi, WICK_PLUGIN_ABI, version());
  }
  if (!plugin->name || !plugin->add)
    throwLoadError("{}: the plugin has no name or adds nothing", path);
  if (plugin->cxx_version && std::string_view(plugin->cxx_version) != WICK_HEADER_VERSION) {
    throwLoadError("{}: the plugin '{}' was built with the headers of Wick {}, this is Wick {}",
                   path, plugin->name, plugin->cxx_version, version());
  }
}

}  // namespace

void loadPlugin(const std::string& path) {
  static auto* const mutex = new std::mutex;
  static auto* const loaded = new std::set<void*>;
  std::lock_guard lock(*mutex);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throwLoadError("{}: the plugin cannot be opened: {}", path,
                   error ? error.message() : "it is not a file");
  }
  // A name without a folder would be searched for elsewhere.
  const std::string absolute = std::filesystem::absolute(path).string();
  Library library(dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!library.get()) {
    const char* reason = dlerror();
    throwLoadError("{}: the plugin cannot be loaded: {}", path,
                   reason ? reason : "no reason given");
  }
  if (loaded->contains(library.get())) return;
  using Entry = const wick_plugin* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library.get(), "wick_plugin_entry"));
  if (!entry) throwLoadError("{}: not a plugin of Wick: it exports no wick_plugin_entry", path);
  const wick_plugin* plugin = entry();
  checkVersion(path, plugin);
  ownError().clear();
  const wick_status status = plugin->add();
  void* const handle = library.get();
  // Some of it may be known by now, and is code.
  library.keep();
  if (status != WICK_OK) {
    std::string reason = ownError();
    const auto source = error_source.load();
    if (reason.empty() && !plugin->cxx_version && source) reason = source();
    throwLoadError("{}: the plugin '{}' could not be added: {}", path, plugin->name,
                   reason.empty() ? "it gives no reason" : reason);
  }
  loaded->insert(handle);
}

namespace detail {

wick_status addPlugin(void (*define)()) noexcept {
  try {
    define();
    return WICK_OK;
  } catch (const std::exception& e) {
    ownError() = e.what();
  } catch (...) {
    ownError() = "an exception of unknown type";
  }
  return WICK_ERROR_USAGE;
}

void setPluginErrorSource(const char* (*source)()) {
  error_source.store(source);
}

}  // namespace detail

}  // namespace wick
