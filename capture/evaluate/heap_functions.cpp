// The functions of `heapq` that are written in C: elements move as they do there, so that the same
// pairs are compared in the same order.
#include "capture/evaluate/capture.h"
#include "capture/evaluate/handlers.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/sequence.h"

namespace wick::capture {
namespace {

class Heap {
 public:
  // `largest`: the largest element comes first.
  Heap(Capture& capture, ListVariable* list, bool largest)
      : capture_(capture),
        list_(list),
        before_(list->all(capture)),
        elements_(before_),
        largest_(largest) {}

  size_t size() const { return elements_.size(); }
  Variable* top() const { return elements_[0]; }
  void push(Variable* element) {
    elements_.push_back(element);
    rise(0, elements_.size() - 1);
  }
  Variable* replaceTop(Variable* element) {
    Variable* const before = elements_[0];
    elements_[0] = element;
    sink(0);
    return before;
  }
  Variable* pop() {
    Variable* const last = elements_.back();
    elements_.pop_back();
    return elements_.empty() ? last : replaceTop(last);
  }
  void order() {
    for (size_t i = elements_.size() / 2; i-- > 0;) sink(i);
  }
  bool isBefore(Variable* left, Variable* right) {
    capture_.step();
    return largest_ ? truthOf(capture_, compare(capture_, Py_LT, right, left))
                    : truthOf(capture_, compare(capture_, Py_LT, left, right));
  }
  // Moves elements by the function, and writes all back. As in C the list stays as it is when a
  // comparison raises.
  template <class F>
  Variable* changing(F&& move) {
    try {
      Variable* const found = move(*this);
      keep();
      return found;
    } catch (const Raised&) {
      keep();
      throw;
    }
  }

 private:
  // Moves the element towards the root, until its parent is before it.
  void rise(size_t root, size_t at) {
    while (at > root) {
      const size_t parent = (at - 1) / 2;
      if (!isBefore(elements_[at], elements_[parent])) break;
      std::swap(elements_[at], elements_[parent]);
      at = parent;
    }
  }
  // Moves the element down to a leaf, and up again to its place.
  void sink(size_t root) {
    size_t at = root;
    while (at < elements_.size() / 2) {
      size_t child = 2 * at + 1;
      if (child + 1 < elements_.size() && !isBefore(elements_[child], elements_[child + 1]))
        ++child;
      std::swap(elements_[at], elements_[child]);
      at = child;
    }
    rise(root, at);
  }

  void keep() {
    if (list_->all(capture_) != before_) breakGraph("a comparison changes a heap");
    list_->replace(capture_, elements_);
  }

  Capture& capture_;
  ListVariable* list_;
  const std::vector<Variable*> before_;
  std::vector<Variable*> elements_;
  const bool largest_;
};

ListVariable* listIn(Capture& capture, const Arguments& given, size_t count) {
  return argumentCount(given) == count ? capture.as<ListVariable>(given.positional[0]) : nullptr;
}

template <bool kLargest>
Variable* heapify(Capture& capture, const Arguments& given) {
  ListVariable* const list = listIn(capture, given, 1);
  if (!list) return nullptr;
  return Heap(capture, list, kLargest).changing([&](Heap& heap) {
    heap.order();
    return capture.constant(Py_None);
  });
}

Variable* push(Capture& capture, const Arguments& given) {
  ListVariable* const list = listIn(capture, given, 2);
  if (!list) return nullptr;
  return Heap(capture, list, false).changing([&](Heap& heap) {
    heap.push(given.positional[1]);
    return capture.constant(Py_None);
  });
}

template <bool kLargest>
Variable* pop(Capture& capture, const Arguments& given) {
  ListVariable* const list = listIn(capture, given, 1);
  if (!list) return nullptr;
  Heap heap(capture, list, kLargest);
  if (heap.size() == 0) capture.raise(PyExc_IndexError, "index out of range");
  return heap.changing([](Heap& all) { return all.pop(); });
}

template <bool kLargest>
Variable* replace(Capture& capture, const Arguments& given) {
  ListVariable* const list = listIn(capture, given, 2);
  if (!list) return nullptr;
  Heap heap(capture, list, kLargest);
  if (heap.size() == 0) capture.raise(PyExc_IndexError, "index out of range");
  return heap.changing([&](Heap& all) { return all.replaceTop(given.positional[1]); });
}

Variable* pushPop(Capture& capture, const Arguments& given) {
  ListVariable* const list = listIn(capture, given, 2);
  if (!list) return nullptr;
  Heap heap(capture, list, false);
  Variable* const element = given.positional[1];
  if (heap.size() == 0 || !heap.isBefore(heap.top(), element)) return element;
  return heap.changing([&](Heap& all) { return all.replaceTop(element); });
}

}  // namespace

void addHeaps(Handlers& handlers) {
  addFrom(handlers, "_heapq", "heapify", heapify<false>);
  addFrom(handlers, "_heapq", "_heapify_max", heapify<true>);
  addFrom(handlers, "_heapq", "heappush", push);
  addFrom(handlers, "_heapq", "heappop", pop<false>);
  addFrom(handlers, "_heapq", "_heappop_max", pop<true>);
  addFrom(handlers, "_heapq", "heapreplace", replace<false>);
  addFrom(handlers, "_heapq", "_heapreplace_max", replace<true>);
  addFrom(handlers, "_heapq", "heappushpop", pushPop);
}

}  // namespace wick::capture
