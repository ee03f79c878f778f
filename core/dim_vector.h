// DimVector: a vector of int64_t that holds up to six elements without allocating, for the sizes
// and strides of tensors. IntSpan: a read-only view of any contiguous int64_t sequence.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <vector>

#include "core/memory_limit.h"

#pragma GCC visibility push(default)

namespace wick {

// A braced list may stand for an IntSpan argument; a variable must not be initialized from one, for
// the list lives only until the end of the expression.
class IntSpan : public std::span<const int64_t> {
 public:
  using span::span;
  IntSpan(span s) : span(s) {}
#pragma GCC diagnostic push
#ifndef __clang__  // which has no such warning
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
#endif
  IntSpan(std::initializer_list<int64_t> values) : span(values.begin(), values.size()) {}
#pragma GCC diagnostic pop
};

class DimVector {
 public:
  using value_type = int64_t;
  using iterator = int64_t*;
  using const_iterator = const int64_t*;

  DimVector() = default;
  explicit DimVector(size_t size, int64_t value = 0) { resize(size, value); }
  DimVector(std::initializer_list<int64_t> values) { assign(values.begin(), values.end()); }
  DimVector(IntSpan values) { assign(values.begin(), values.end()); }
  DimVector(const std::vector<int64_t>& values) { assign(values.begin(), values.end()); }
  template <class It>
  requires(!std::is_integral_v<It>) DimVector(It first, It last) { assign(first, last); }
  DimVector(const DimVector& o) { assign(o.begin(), o.end()); }
  DimVector(DimVector&& o) noexcept { steal(o); }
  DimVector& operator=(const DimVector& o) {
    if (this != &o) assign(o.begin(), o.end());
    return *this;
  }
  DimVector& operator=(DimVector&& o) noexcept {
    if (this != &o) {
      release();
      steal(o);
    }
    return *this;
  }
  ~DimVector() { release(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t* data() { return data_; }
  const int64_t* data() const { return data_; }
  iterator begin() { return data_; }
  iterator end() { return data_ + size_; }
  const_iterator begin() const { return data_; }
  const_iterator end() const { return data_ + size_; }
  int64_t& operator[](size_t i) { return data_[i]; }
  int64_t operator[](size_t i) const { return data_[i]; }
  int64_t& back() { return data_[size_ - 1]; }
  int64_t back() const { return data_[size_ - 1]; }
  int64_t& front() { return data_[0]; }
  int64_t front() const { return data_[0]; }

  void push_back(int64_t v) {
    reserve(size_ + 1);
    data_[size_++] = v;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void resize(size_t n, int64_t value = 0) {
    reserve(n);
    for (size_t i = size_; i < n; ++i) data_[i] = value;
    size_ = static_cast<uint32_t>(n);
  }
  void reserve(size_t n) {
    if (n <= capacity_) return;
    size_t capacity = std::max<size_t>(n, size_t{capacity_} * 2);
    if (capacity >= kChecked) checkRoom(capacity);
    int64_t* grown = new int64_t[capacity];
    noteMemory(static_cast<int64_t>(capacity * sizeof(int64_t)));
    std::memcpy(grown, data_, size_ * sizeof(int64_t));
    release();
    data_ = grown;
    capacity_ = static_cast<uint32_t>(capacity);
  }
  void insert(size_t index, int64_t v) {
    push_back(v);
    std::rotate(begin() + index, end() - 1, end());
  }
  void erase(size_t index) {
    std::copy(begin() + index + 1, end(), begin() + index);
    --size_;
  }
  template <class It>
  void assign(It first, It last) {
    clear();
    reserve(static_cast<size_t>(std::distance(first, last)));
    for (; first != last; ++first) data_[size_++] = *first;
  }

  operator IntSpan() const { return IntSpan(data_, size_); }
  friend bool operator==(const DimVector& a, const DimVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  static constexpr uint32_t kInline = 6;
  // Numbers from which on a program's limits are asked before there is room for them.
  static constexpr size_t kChecked = detail::kUncounted / sizeof(int64_t);
  static void checkRoom(size_t n);
  void release() {
    if (data_ == inline_) return;
    noteMemory(-static_cast<int64_t>(capacity_ * sizeof(int64_t)));
    delete[] data_;
  }
  void steal(DimVector& o) {
    size_ = o.size_;
    if (o.data_ == o.inline_) {
      data_ = inline_;
      capacity_ = kInline;
      std::memcpy(inline_, o.inline_, size_ * sizeof(int64_t));
    } else {
      data_ = o.data_;
      capacity_ = o.capacity_;
      o.data_ = o.inline_;
      o.capacity_ = kInline;
    }
    o.size_ = 0;
  }

  uint32_t size_ = 0;
  uint32_t capacity_ = kInline;
  int64_t* data_ = inline_;
  int64_t inline_[kInline];
};

}  // namespace wick

#pragma GCC visibility pop
