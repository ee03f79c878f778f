#include "core/symbol.h"

#include <deque>
#include <mutex>
#include <shared_mutex>

#include "core/error.h"
#include "core/keyed_hash.h"

namespace wick {

namespace {

struct Name {
  std::string qualified;
  size_t colon;  // position of "::"
};

class Table {
 public:
  Table() {
    names_.push_back({"", 0});  // the id 0
#define WICK_INTERNED(ns, name) add(#ns "::" #name);
    WICK_FORALL_INTERNED(WICK_INTERNED)
#undef WICK_INTERNED
  }

  Symbol intern(std::string_view qualified) {
    {
      std::shared_lock lock(mutex_);
      if (auto it = ids_.find(qualified); it != ids_.end()) return Symbol(it->second);
    }
    std::unique_lock lock(mutex_);
    if (auto it = ids_.find(qualified); it != ids_.end()) return Symbol(it->second);
    return Symbol(add(qualified));
  }

  const Name& at(uint32_t id) {
    std::shared_lock lock(mutex_);
    return names_[id];
  }

 private:
  uint32_t add(std::string_view qualified) {
    size_t colon = qualified.find("::");
    WICK_ASSERT(colon != std::string_view::npos, "a symbol needs a namespace: '{}'", qualified);
    uint32_t id = names_.size();
    names_.push_back({std::string(qualified), colon});
    ids_.emplace(names_.back().qualified, id);
    return id;
  }

  std::shared_mutex mutex_;
  std::deque<Name> names_;  // a deque, so that the views into the strings stay valid
  KeyedMap<std::string_view, uint32_t> ids_;
};

Table& table() {
  static Table* instance = new Table;  // never destroyed: symbols are used by static destructors
  return *instance;
}

}  // namespace

Symbol Symbol::fromQualString(std::string_view qualified) {
  return table().intern(qualified);
}

Symbol Symbol::aten(std::string_view name) {
  return fromQualString("aten::" + std::string(name));
}

Symbol Symbol::prim(std::string_view name) {
  return fromQualString("prim::" + std::string(name));
}

Symbol Symbol::attr(std::string_view name) {
  return fromQualString("attr::" + std::string(name));
}

std::string_view Symbol::ns() const {
  const Name& n = table().at(id_);
  return std::string_view(n.qualified).substr(0, n.colon);
}

std::string_view Symbol::name() const {
  const Name& n = table().at(id_);
  return id_ == 0 ? std::string_view() : std::string_view(n.qualified).substr(n.colon + 2);
}

std::string_view Symbol::qualString() const {
  return table().at(id_).qualified;
}

}  // namespace wick
