// Classes and interfaces: what a type offers by name, and when a class satisfies an interface.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "core/function_schema.h"
#include "core/ivalue.h"
#include "core/keyed_hash.h"
#include "core/type.h"

namespace wick {

namespace {

const std::string& nameOf(const ClassType::Constant& constant) {
  return constant.name;
}
const std::string& nameOf(const ClassType::Property& property) {
  return property.name;
}
const std::string& nameOf(const std::string& field) {
  return field;
}
std::string_view nameOf(const Function* function) {
  const std::string_view whole = function->qualifiedName();
  return whole.substr(whole.rfind('.') + 1);
}
std::string_view nameOf(const std::shared_ptr<Function>& function) {
  return nameOf(function.get());
}

template <class Entry>
bool isCalled(const Entry& entry, std::string_view name) {
  return nameOf(entry) == name;
}
// Of a qualified name any number of last parts will do.
bool isCalled(const Function* function, std::string_view name) {
  const std::string_view whole = function->qualifiedName();
  return whole.ends_with(name) &&
         (whole.size() == name.size() || whole[whole.size() - name.size() - 1] == '.');
}
bool isCalled(Function* function, std::string_view name) {
  return isCalled(static_cast<const Function*>(function), name);
}
bool isCalled(const std::shared_ptr<Function>& function, std::string_view name) {
  return isCalled(function.get(), name);
}

// Long lists that types have, by name. A type has only their order, which a search goes along: good
// for few, but a class whose n methods name each other would take n * n steps.
class NameIndex {
 public:
  static constexpr size_t kMany = 64;

  static NameIndex& instance() {
    static NameIndex* const index = new NameIndex;  // types may outlive static variables
    return *index;
  }

  // Where the first entry of this name stands in `list`, a member of `owner`.
  template <class Entry>
  std::optional<size_t> find(const std::weak_ptr<const Type>& owner, const std::vector<Entry>& list,
                             std::string_view name) {
    {
      std::shared_lock lock(mutex_);
      auto found = lists_.find(&list);
      if (found != lists_.end() && found->second.isOf(list.size())) return found->second.at(name);
    }
    std::unique_lock lock(mutex_);
    dropEnded();
    Names& names = lists_[&list];
    if (names.owner.expired()) names = {owner, 0, {}};
    for (; names.known < list.size(); ++names.known) {
      names.by_name.emplace(nameOf(list[names.known]), names.known);
    }
    return names.at(name);
  }

  // Before the list loses entries.
  template <class Entry>
  void forget(const std::vector<Entry>& list) {
    if (list.size() < kMany) return;
    std::unique_lock lock(mutex_);
    lists_.erase(&list);
  }

 private:
  struct Names {
    // What lives at the address of the list as long as this lives is that list.
    std::weak_ptr<const Type> owner;
    size_t known = 0;
    KeyedMap<std::string, size_t> by_name;  // the first of a name

    bool isOf(size_t size) const { return known == size && !owner.expired(); }
    std::optional<size_t> at(std::string_view name) const {
      auto found = by_name.find(name);
      if (found == by_name.end()) return std::nullopt;
      return found->second;
    }
  };

  // Whenever there are twice as many as were left the last time.
  void dropEnded() {
    if (lists_.size() < limit_) return;
    std::erase_if(lists_, [](const auto& entry) { return entry.second.owner.expired(); });
    limit_ = std::max(kMany, 2 * lists_.size());
  }

  std::shared_mutex mutex_;
  std::unordered_map<const void*, Names> lists_;
  size_t limit_ = kMany;
};

template <class Entry>
std::optional<size_t> findByName(const Type& owner, const std::vector<Entry>& list,
                                 std::string_view name) {
  if (list.size() >= NameIndex::kMany && name.find('.') == name.npos) {
    // A type that no pointer shares has no end that could be noticed.
    const std::weak_ptr<const Type> shared = owner.weak_from_this();
    if (!shared.expired()) return NameIndex::instance().find(shared, list, name);
  }
  for (size_t i = 0; i < list.size(); ++i) {
    if (isCalled(list[i], name)) return i;
  }
  return std::nullopt;
}

bool listFits(const std::vector<Argument>& child, const std::vector<Argument>& parent, size_t start,
              bool compare_names) {
  if (child.size() != parent.size()) return false;
  for (size_t i = start; i < child.size(); ++i) {
    if (compare_names && child[i].name != parent[i].name) return false;
    if (!child[i].type->isSubtypeOf(*parent[i].type)) return false;
  }
  return true;
}

// Whether a method of schema `have` can be called as one of schema `want`: arguments are
// contravariant, returns covariant; the first argument is self.
bool methodFits(const FunctionSchema& have, const FunctionSchema& want) {
  return listFits(want.arguments(), have.arguments(), 1, true) &&
         listFits(have.returns(), want.returns(), 0, true);
}

template <class FindMethod>
bool offersMethods(const char* what, const std::string& name, const InterfaceType& wanted,
                   FindMethod find, std::string* why) {
  for (const auto& method : wanted.methods()) {
    Function* own = find(method->name());
    if (!own) {
      if (why) {
        *why = fmt::format("{} '{}' does not have method '{}' but interface '{}' does", what, name,
                           method->name(), wanted.name());
      }
      return false;
    }
    if (!methodFits(own->schema(), method->schema())) {
      if (why) {
        *why = fmt::format(
            "method on {} '{}' (1) is not compatible with interface '{}' (2):\n"
            "  (1) {}\n  (2) {}",
            what, name, wanted.name(), own->schema().str(), method->schema().str());
      }
      return false;
    }
  }
  return true;
}

// Interfaces mention each other, in circles and each as often as it likes. While a question is
// being answered its answer is taken for yes where it comes up again, which is right unless
// something else says no; and each answer is found once.
class InterfaceQuestions {
 public:
  template <class Answer>
  static bool ask(const Type& have, const InterfaceType& wanted, Answer answer) {
    static thread_local InterfaceQuestions questions;
    return questions.answered({&have, &wanted}, answer);
  }

 private:
  using Question = std::pair<const Type*, const Type*>;
  static constexpr size_t kMaxDepth = 500;

  template <class Answer>
  bool answered(const Question& question, Answer answer) {
    if (denied_.contains(question)) return false;
    if (!assumed_.insert(question).second) return true;
    struct Level {
      InterfaceQuestions& all;
      explicit Level(InterfaceQuestions& all) : all(all) { ++all.depth_; }
      ~Level() {
        if (--all.depth_ != 0) return;
        all.assumed_.clear();
        all.denied_.clear();
        all.order_.clear();
      }
    } level(*this);
    WICK_CHECK(depth_ <= kMaxDepth, "interfaces mention each other more than {} deep", kMaxDepth);
    const size_t before = order_.size();
    order_.push_back(question);
    if (answer()) return true;
    // Every yes since then may rest on this one.
    for (; order_.size() > before; order_.pop_back()) assumed_.erase(order_.back());
    denied_.insert(question);
    return false;
  }

  std::set<Question> assumed_;
  std::vector<Question> order_;  // of assumed_
  std::set<Question> denied_;
  size_t depth_ = 0;
};

}  // namespace

std::optional<size_t> TupleType::fieldIndex(const std::string& field) const {
  return findByName(*this, fields_, field);
}

Function* InterfaceType::findMethod(const std::string& name) const {
  const auto found = findByName(*this, methods_, name);
  return found ? methods_[*found].get() : nullptr;
}

bool InterfaceType::isSubtypeOf(const Type& other, std::string* why) const {
  if (const auto* wanted = other.as<InterfaceType>()) {
    if (this == wanted) return true;
    if (!is_module_ && wanted->isModule()) {
      if (why) {
        *why = fmt::format("interface '{}' is not a subtype of the module interface '{}'", name_,
                           wanted->name());
      }
      return false;
    }
    auto find = [&](const std::string& method) { return findMethod(method); };
    return InterfaceQuestions::ask(
        *this, *wanted, [&] { return offersMethods("interface", name_, *wanted, find, why); });
  }
  return Type::isSubtypeOf(other, why);
}

ClassType::ClassType(std::string name, bool is_module)
    : Type(kKind), name_(std::move(name)), is_module_(is_module) {
  measureName(name_);
}

ClassType::~ClassType() = default;

void ClassType::dissolve() {
  NameIndex::instance().forget(methods_);
  NameIndex::instance().forget(static_methods_);
  NameIndex::instance().forget(constants_);
  NameIndex::instance().forget(properties_);
  attributes_.clear();
  attribute_index_.clear();
  constants_.clear();
  methods_.clear();
  static_methods_.clear();
  properties_.clear();
  pre_hooks_.clear();
  hooks_.clear();
}

std::optional<size_t> ClassType::findAttribute(const std::string& name) const {
  auto it = attribute_index_.find(name);
  if (it == attribute_index_.end()) return std::nullopt;
  return it->second;
}

size_t ClassType::addAttribute(std::string name, TypePtr type, bool is_parameter, bool is_buffer) {
  WICK_CHECK(!attribute_index_.contains(name), "class '{}': attribute '{}' is declared twice",
             name_, name);
  WICK_CHECK(!findConstant(name), "class '{}': '{}' is already a constant", name_, name);
  size_t slot = attributes_.size();
  attribute_index_.emplace(name, slot);
  attributes_.push_back({std::move(name), std::move(type), is_parameter, is_buffer});
  return slot;
}

const std::vector<ClassType::Constant>& ClassType::constants() const {
  return constants_;
}

const IValue* ClassType::findConstant(const std::string& name) const {
  const auto found = findByName(*this, constants_, name);
  return found ? &constants_[*found].value : nullptr;
}

void ClassType::addConstant(std::string name, IValue value) {
  WICK_CHECK(!attribute_index_.contains(name), "class '{}': '{}' is already an attribute", name_,
             name);
  WICK_CHECK(!findConstant(name), "class '{}': constant '{}' is declared twice", name_, name);
  constants_.push_back({std::move(name), std::move(value)});
}

Function* ClassType::findMethod(const std::string& name) const {
  const auto found = findByName(*this, methods_, name);
  return found ? methods_[*found] : nullptr;
}

Function* ClassType::findStaticMethod(const std::string& name) const {
  const auto found = findByName(*this, static_methods_, name);
  return found ? static_methods_[*found] : nullptr;
}

const ClassType::Property* ClassType::findProperty(const std::string& name) const {
  const auto found = findByName(*this, properties_, name);
  return found ? &properties_[*found] : nullptr;
}

bool ClassType::isSubtypeOf(const Type& other, std::string* why) const {
  if (other.kind() == TypeKind::AnyClass) return true;
  if (const auto* wanted = other.as<InterfaceType>()) {
    if (!is_module_ && wanted->isModule()) {
      if (why) {
        *why = fmt::format("class '{}' is not a subtype of the module interface '{}'", name_,
                           wanted->name());
      }
      return false;
    }
    auto find = [&](const std::string& method) { return findMethod(method); };
    return InterfaceQuestions::ask(
        *this, *wanted, [&] { return offersMethods("class", name_, *wanted, find, why); });
  }
  return Type::isSubtypeOf(other, why);
}

}  // namespace wick
