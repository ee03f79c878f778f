// What all lazy tensors of one storage share: its contents.
#pragma once

#include <exception>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "lazy/graph.h"

namespace wick::lazy {

// Attached to the storage, and lives as long. The contents are data of the device below, or a value
// of a graph, or neither: then they are zeros. All is synchronized by mutex().
class Base : public RefCounted {
 public:
  explicit Base(Storage& storage);
  ~Base() override;

  static Base& of(const Tensor& t);

  // Makes sure that read(), and write() with `writes`, leave the calling thread's graph as it is:
  // what they cannot do within it is evaluated now. Values from before are no longer valid then.
  void prepare(const Tensor& t, bool writes);
  // The tensor's value in the calling thread's graph, after prepare(). Throws the error of what it depends on.
  ValueId read(const Tensor& t);
  // The tensor's data. Evaluates when there are none yet.
  Tensor fetch(const Tensor& t, const char* cause);
  // The tensor gets a value of its dtype and sizes, whose strides are said. After prepare().
  void write(const Tensor& t, ValueId value, const Geometry& of_value);
  // The tensor gets data of its sizes, which nobody else writes to. They may be kept.
  void writeData(const Tensor& t, const Tensor& data);
  // All of the contents, after fetch(), are what this memory holds, which nobody else writes to.
  void adopt(const Ref<Storage>& memory);
  // A view of the storage is this value, as long as nobody writes.
  void remember(const Geometry& view, ValueId value);
  bool isPending() const { return graph_ != nullptr; }

  // ---- for graphs ----

  ValueId value() const { return value_; }
  size_t place = 0;  // among those that a graph expects
  const Geometry& layout() const { return layout_; }
  void become(const Tensor& data);
  void fail(std::exception_ptr error);

 private:
  void checkError() const {
    if (error_) std::rethrow_exception(error_);
  }
  void settle(const char* cause);
  // Nothing is expected of a graph any more, and no error is known.
  void leaveGraph();
  bool isWhole(const Geometry& view) const;
  void startZeros(DType dtype);
  void covers(int64_t end, size_t item_size);
  void setValue(ValueId value);
  Tensor dataView(const Geometry& view) const;

  Storage& storage_;
  Geometry layout_;  // of the contents: dense
  Tensor data_;      // with this layout, at the beginning of a storage of its own
  std::shared_ptr<Graph> graph_;
  ValueId value_ = kNoValue;
  std::vector<std::pair<Geometry, ValueId>> views_;
  std::exception_ptr error_;
};

}  // namespace wick::lazy
