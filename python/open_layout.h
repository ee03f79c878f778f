// Sizes and strides of a tensor, some of which an entry of wick.compile leaves open.
#pragma once

#include <string>
#include <vector>

#include "capture/world.h"
#include "core/tensor.h"

namespace wick::python {

class OpenLayout {
 public:
  OpenLayout(IntSpan sizes, IntSpan strides, const capture::InputSizes& input);

  // Returns whether a tensor with these lies as the example does: closed sizes are the same, open
  // ones at least 2; where the example's elements lay without gaps, so do these, in the same order of
  // dimensions, else the strides are the same.
  bool matches(IntSpan sizes, IntSpan strides) const;
  // Returns the strides of a tensor of other sizes that lies so.
  DimVector stridesFor(IntSpan sizes) const;
  bool isOpen() const;
  // "2, *, 3"
  std::string text() const;

 private:
  DimVector sizes_, strides_;
  std::vector<bool> open_;     // by dimension
  std::vector<size_t> order_;  // dimensions by their strides, largest first; empty: gaps
};

// Returns a tensor without memory for an input with these sizes and strides. The device is a stand-in (lazy/stand_in.h).
Tensor fakeOf(IntSpan sizes, IntSpan strides, DType dtype, Device device,
              const capture::InputSizes& input);

}  // namespace wick::python
