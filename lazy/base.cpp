#include "lazy/base.h"

#include <algorithm>

#include "core/error.h"
#include "lazy/device_below.h"
#include "lazy/view_records.h"

namespace wick::lazy {

Base::Base(Storage& storage) : storage_(storage) {
  countBase(1);
}

Base::~Base() {
  const std::lock_guard lock(mutex());
  countBase(-1);
  if (graph_) graph_->forget(this);
}

Base& Base::of(const Tensor& t) {
  Storage& storage = *t.storage();
  RefCounted* found = storage.derived();
  if (!found) found = storage.attachDerived(makeRef<Base>(storage));
  return static_cast<Base&>(*found);
}

void Base::settle(const char* cause) {
  const std::shared_ptr<Graph> graph = graph_;
  graph->evaluate(cause);
  checkError();
}

void Base::startZeros(DType dtype) {
  const auto count = static_cast<int64_t>(storage_.bytes() / itemSize(dtype));
  data_ = Tensor::zeros({count}, dtype, deviceBelow());
  layout_ = Geometry::of(data_);
}

// A storage that was enlarged has more bytes than its contents.
void Base::covers(int64_t end, size_t item_size) {
  const size_t needed = static_cast<size_t>(end) * item_size;
  if (needed <= data_.storage()->bytes()) return;
  const auto bytes = static_cast<int64_t>(storage_.bytes());
  const auto kept = std::min(bytes, static_cast<int64_t>(data_.storage()->bytes()));
  const Tensor grown = Tensor::zeros({bytes}, DType::Byte, deviceBelow());
  grown.asStrided({kept}, {1}, 0)
      .copyFrom(Tensor::fromStorage(data_.storage(), DType::Byte, {kept}, {1}, 0));
  const auto count = static_cast<int64_t>(storage_.bytes() / itemSize(layout_.dtype));
  data_ = Tensor::fromStorage(grown.storage(), layout_.dtype, {count}, {1}, 0);
  layout_ = Geometry::of(data_);
}

Tensor Base::dataView(const Geometry& view) const {
  return Tensor::fromStorage(data_.storage(), view.dtype, view.sizes, view.strides, view.offset);
}

bool Base::isWhole(const Geometry& view) const {
  return view.isDense() &&
         static_cast<size_t>(view.numel()) * itemSize(view.dtype) == storage_.bytes();
}

void Base::prepare(const Tensor& t, bool writes) {
  if (!graph_ || t.numel() == 0) return;
  if (!writes && graph_ == Graph::current() && layout_.isThatOf(t)) return;
  const Geometry view = Geometry::of(t);
  if (writes && isWhole(view)) return;
  if (graph_ != Graph::current()) return settle("another thread");
  if (!writes) {
    if (view == layout_) return;
    for (const auto& [known, value] : views_) {
      if (known == view) return;
    }
  }
  const bool fits =
      view.dtype == layout_.dtype && layout_.isContiguous() && view.end() <= layout_.end();
  if (!fits) settle("a view of memory in another layout");
}

ValueId Base::read(const Tensor& t) {
  const std::shared_ptr<Graph>& graph = Graph::current();
  if (graph_ == graph && !error_ && t.numel() != 0 && layout_.isThatOf(t)) return value_;
  const Geometry view = Geometry::of(t);
  if (t.numel() == 0) {
    return graph->input(Tensor::emptyStrided(view.sizes, view.strides, view.dtype, deviceBelow()));
  }
  checkError();
  if (graph_) {
    WICK_ASSERT(graph_ == graph, "a lazy tensor of another thread");
    if (view == layout_) return value_;
    for (const auto& [known, value] : views_) {
      if (known == view) return value;
    }
    const ValueId value = recordView(*graph, value_, layout_, view);
    views_.emplace_back(view, value);
    return value;
  }
  if (!data_.defined()) startZeros(view.dtype);
  covers(view.end(), itemSize(view.dtype));
  return graph->input(dataView(view));
}

Tensor Base::fetch(const Tensor& t, const char* cause) {
  const Geometry view = Geometry::of(t);
  if (t.numel() == 0)
    return Tensor::emptyStrided(view.sizes, view.strides, view.dtype, deviceBelow());
  checkError();
  if (graph_) settle(cause);
  if (!data_.defined()) startZeros(view.dtype);
  covers(view.end(), itemSize(view.dtype));
  return dataView(view);
}

void Base::setValue(ValueId value) {
  if (!graph_) {
    graph_ = Graph::current();
    graph_->expect(this);
  }
  value_ = value;
  data_ = Tensor();
  views_.clear();
  error_ = nullptr;
}

void Base::write(const Tensor& t, ValueId value, const Geometry& of_value) {
  if (t.numel() == 0) return;
  Graph& graph = *Graph::current();
  Geometry view = Geometry::of(t);
  if (isWhole(view)) {
    if (graph_ && graph_.get() != &graph) leaveGraph();
    value = recordStrides(graph, value, of_value, view.strides);
    setValue(value);
    layout_ = std::move(view);
    return;
  }
  checkError();
  ValueId whole = value_;
  if (!graph_) {
    if (!data_.defined()) startZeros(view.dtype);
    covers(view.end(), itemSize(view.dtype));
    if (layout_.dtype != view.dtype || !layout_.isContiguous()) {
      const auto count = static_cast<int64_t>(storage_.bytes() / itemSize(view.dtype));
      data_ = Tensor::fromStorage(data_.storage(), view.dtype, {count}, {1}, 0);
      layout_ = Geometry::of(data_);
    }
    whole = graph.input(data_);
  }
  setValue(recordWrite(graph, whole, layout_, view, value));
}

void Base::writeData(const Tensor& t, const Tensor& data) {
  if (t.numel() == 0) return;
  const Geometry view = Geometry::of(t);
  if (!isWhole(view)) {
    prepare(t, true);
    return write(t, Graph::current()->input(data), Geometry::of(data));
  }
  layout_ = view;
  become(data);
}

void Base::adopt(const Ref<Storage>& memory) {
  // The call may have enlarged it.
  const auto count = static_cast<int64_t>(memory->bytes() / itemSize(layout_.dtype));
  if (count > layout_.numel()) {
    layout_.sizes = {count};
    layout_.strides = {1};
    layout_.offset = 0;
  }
  data_ = Tensor::fromStorage(memory, layout_.dtype, layout_.sizes, layout_.strides, 0);
  error_ = nullptr;
}

void Base::leaveGraph() {
  if (graph_) graph_->forget(this);
  graph_.reset();
  views_.clear();
  value_ = kNoValue;
  error_ = nullptr;
}

void Base::become(const Tensor& data) {
  leaveGraph();
  if (Geometry::of(data) == layout_ && data.device() == deviceBelow()) {
    data_ = data;
    return;
  }
  data_ = Tensor::emptyStrided(layout_.sizes, layout_.strides, layout_.dtype, deviceBelow());
  data_.copyFrom(data);
}

void Base::fail(std::exception_ptr error) {
  leaveGraph();
  data_ = Tensor();
  error_ = std::move(error);
}

void Base::remember(const Geometry& view, ValueId value) {
  if (graph_ && graph_ == Graph::current()) views_.emplace_back(view, value);
}

}  // namespace wick::lazy
