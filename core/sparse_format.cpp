// Sparse tensors as text: their parts one below the other.
#include <fmt/format.h>

#include "core/sparse_form.h"
#include "core/stream_format.h"

namespace wick {

std::string formatSparse(const Tensor& t) {
  const SparseForm& form = sparseFormOf("str", t);
  std::string out =
      fmt::format("[ {}CPU{}Type{{}}\n", toString(form.layout), scalarTypeName(t.dtype()));
  const auto add = [&](const char* name, const Tensor& part) {
    out += std::string(name) + ":\n";
    appendStreamed(out, part);
    out += "\n";
  };
  if (form.isCoo()) {
    add("indices", form.indices);
  } else {
    add(isByRows(form.layout) ? "crow_indices" : "ccol_indices", form.compressed);
    add(isByRows(form.layout) ? "col_indices" : "row_indices", form.plain);
  }
  add("values", form.values);
  return out + "size:\n" + formatInts(t.sizes()) + "\n]";
}

}  // namespace wick
