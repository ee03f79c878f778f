// A map from names whose entries belong to nested scopes. Looking up costs the same at any depth.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/keyed_hash.h"

namespace wick {

template <class T>
class ScopedMap {
 public:
  void push() { scopes_.emplace_back(); }

  // Ends the innermost scope; its entries, in no particular order.
  std::vector<std::pair<std::string, T>> pop() {
    WICK_ASSERT(!scopes_.empty(), "there is no scope to end");
    std::vector<std::pair<std::string, T>> entries;
    for (std::vector<Entry>* found : scopes_.back()) {
      entries.emplace_back(*found->back().name, std::move(found->back().value));
      found->pop_back();
    }
    scopes_.pop_back();
    return entries;
  }

  // In the innermost scope.
  void set(const std::string& name, T value) {
    auto at = entries_.try_emplace(name).first;
    std::vector<Entry>& found = at->second;
    if (found.empty() || found.back().depth != scopes_.size()) {
      found.push_back({scopes_.size(), &at->first, T()});
      scopes_.back().push_back(&found);
    }
    found.back().value = std::move(value);
  }

  // The entry of the innermost scope, or null.
  const T* findInScope(const std::string& name) const {
    auto at = entries_.find(name);
    const bool here =
        at != entries_.end() && !at->second.empty() && at->second.back().depth == scopes_.size();
    return here ? &at->second.back().value : nullptr;
  }

  // The innermost entry, or null.
  const T* find(const std::string& name) const {
    auto at = entries_.find(name);
    return at == entries_.end() || at->second.empty() ? nullptr : &at->second.back().value;
  }

 private:
  struct Entry {
    size_t depth;
    const std::string* name;
    T value;
  };
  // Pointers to entries of an unordered_map stay valid while it grows.
  KeyedMap<std::string, std::vector<Entry>> entries_;
  std::vector<std::vector<std::vector<Entry>*>> scopes_;
};

}  // namespace wick
