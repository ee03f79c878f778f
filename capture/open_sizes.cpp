#include "capture/open_sizes.h"

#include <map>

namespace wick::capture {

bool SizeHistory::differs(const std::string& source, size_t dim,
                          const std::vector<int64_t>& sizes) const {
  const auto found = seen_.find(source);
  if (found == seen_.end() || found->second.sizes.size() != sizes.size()) return false;
  return found->second.changed[dim] || found->second.sizes[dim] != sizes[dim];
}

void SizeHistory::note(const std::string& source, const std::vector<int64_t>& sizes) {
  const auto [at, added] = seen_.try_emplace(source);
  Seen& seen = at->second;
  if (added || seen.sizes.size() != sizes.size()) {
    seen = {sizes, std::vector<bool>(sizes.size())};
    return;
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (seen.sizes[i] != sizes[i]) seen.changed[i] = true;
  }
}

namespace {

struct Marks {
  Object weak;  // of the tensor
  std::map<size_t, bool> dims;
};

// By the address of the tensor.
std::unordered_map<PyObject*, Marks>& allMarks() {
  static auto& all = *new std::unordered_map<PyObject*, Marks>;
  return all;
}

}  // namespace

void markSizes(PyObject* tensor, const std::vector<int64_t>& dims, bool open) {
  auto& all = allMarks();
  std::erase_if(all, [](const auto& each) {
    return PyWeakref_GET_OBJECT(each.second.weak.get()) == Py_None;
  });
  Marks& marks = all[tensor];
  if (!marks.weak) marks.weak = Object::checked(PyWeakref_NewRef(tensor, nullptr));
  for (const int64_t dim : dims) marks.dims[static_cast<size_t>(dim)] = open;
}

std::optional<bool> markOf(PyObject* tensor, size_t dim) {
  const auto& all = allMarks();
  const auto found = all.find(tensor);
  if (found == all.end() || PyWeakref_GET_OBJECT(found->second.weak.get()) != tensor) {
    return std::nullopt;
  }
  const auto mark = found->second.dims.find(dim);
  return mark == found->second.dims.end() ? std::nullopt : std::optional(mark->second);
}

}  // namespace wick::capture
