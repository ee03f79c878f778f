#include "runtime/cuda/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "core/error.h"

namespace wick::cuda {

namespace {

// Returns why a library cannot be opened, without its name, which the caller tells:
// "libcuda.so.1: cannot open shared object file: No such file or directory" is "No such file or directory".
std::string reasonWithout(const std::string& name, std::string said) {
  for (const std::string& begin : {name + ": ", std::string("cannot open shared object file: ")}) {
    if (said.starts_with(begin)) said.erase(0, begin.size());
  }
  return said;
}

}  // namespace

Library::Library(std::span<const char* const> names) : name_(names.front()) {
  std::vector<std::string> folders = {""};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* folder = std::getenv(variable);
    if (folder && *folder) folders.push_back(fmt::format("{}/lib64/", folder));
  }
  folders.emplace_back("/usr/local/cuda/lib64/");
  for (const std::string& folder : folders) {
    for (const char* name : names) {
      handle_ = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_) return;
      if (const char* said = dlerror(); said && error_.empty()) {
        error_ = reasonWithout(name_, said);
      }
    }
  }
}

void* Library::find(const char* function) const {
  WICK_CHECK(handle_, "CUDA: the library {} cannot be opened: {}", name_, error_);
  void* found = dlsym(handle_, function);
  WICK_CHECK(found, "CUDA: the library {} has no function {}; it is too old or broken", name_,
             function);
  return found;
}

}  // namespace wick::cuda
