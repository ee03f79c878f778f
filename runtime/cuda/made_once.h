// What is made when it is first asked for, and kept as long as the process.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace wick::cuda {

// Thread-safe.
template <class Key, class Value>
class MadeOnce {
 public:
  // `make` gives a unique_ptr; when it throws, the next caller tries again.
  template <class Make>
  Value& of(const Key& key, Make&& make) {
    std::lock_guard lock(mutex_);
    std::unique_ptr<Value>& slot = known_[key];
    if (!slot) slot = std::forward<Make>(make)();
    return *slot;
  }

 private:
  std::mutex mutex_;
  std::map<Key, std::unique_ptr<Value>> known_;
};

}  // namespace wick::cuda
