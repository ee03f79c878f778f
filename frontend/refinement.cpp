#include "frontend/refinement.h"

#include <algorithm>

namespace wick {

namespace {

// The last that is said about each variable.
KeyedMap<std::string, TypePtr> lastOf(const RefinementList& list) {
  KeyedMap<std::string, TypePtr> out;
  for (const Refinement& r : list.all()) out[r.name] = r.type;
  return out;
}

bool isTypeGroup(TypeKind kind) {
  return kind == TypeKind::AnyList || kind == TypeKind::AnyTuple;
}

// Whether isinstance(value of `type`, `candidate`) is true for every value.
bool covers(const TypePtr& candidate, const TypePtr& type) {
  if (type->kind() == TypeKind::Any) return candidate->kind() == TypeKind::Any;
  return type->isSubtypeOf(*candidate);
}

}  // namespace

std::span<const Refinement> RefinementList::all() const {
  if (!store_) return {};
  return std::span(store_->entries).first(size_);
}

std::vector<Refinement> RefinementList::of(const std::vector<std::string>& names) const {
  if (empty()) return {};
  std::vector<size_t> found;
  for (const std::string& name : names) {
    auto it = store_->positions.find(name);
    if (it == store_->positions.end()) continue;
    for (size_t position : it->second) {
      if (position < size_) found.push_back(position);
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<Refinement> out;
  for (size_t position : found) out.push_back(store_->entries[position]);
  return out;
}

void RefinementList::append(std::span<const Refinement> more) {
  if (more.empty()) return;
  if (!store_ || store_->entries.size() != size_) {
    // Another row has gone on from here.
    auto own = std::make_shared<Store>();
    const std::span<const Refinement> before = all();
    own->entries.assign(before.begin(), before.end());
    for (size_t i = 0; i < size_; ++i) own->positions[own->entries[i].name].push_back(i);
    store_ = std::move(own);
  }
  for (const Refinement& r : more) {
    std::vector<size_t>& positions = store_->positions[r.name];
    // What is known already need not be said again.
    if (!positions.empty() && sameType(store_->entries[positions.back()].type, r.type)) continue;
    positions.push_back(store_->entries.size());
    store_->entries.push_back(r);
  }
  size_ = store_->entries.size();
}

RefinementList RefinementSet::all(const RefinementList& a, const RefinementList& b) {
  RefinementList out = a;
  // A copy: both may share what they hold.
  const std::span<const Refinement> more = b.all();
  out.append(std::vector<Refinement>(more.begin(), more.end()));
  return out;
}

RefinementList RefinementSet::common(const RefinementList& a, const RefinementList& b) {
  if (a.empty() || b.empty()) return {};
  const KeyedMap<std::string, TypePtr> mine = lastOf(a);
  const KeyedMap<std::string, TypePtr> others = lastOf(b);
  KeyedSet<std::string> done;
  std::vector<Refinement> out;
  for (const Refinement& r : a.all()) {
    auto other = others.find(r.name);
    if (other == others.end() || done.contains(r.name)) continue;
    auto unified = unifyTypes(mine.at(r.name), other->second, true);
    if (!unified) continue;
    done.insert(r.name);
    out.push_back({r.name, *unified});
  }
  return out;
}

TypePtr withoutNone(const TypePtr& type) {
  if (const auto* optional = type->as<OptionalType>()) return optional->element();
  if (const auto* sum = type->as<UnionType>(); sum && type->acceptsNone()) {
    std::vector<TypePtr> rest;
    for (const TypePtr& t : sum->contained()) {
      if (t->kind() != TypeKind::None) rest.push_back(t);
    }
    return unionOf(rest);
  }
  return nullptr;
}

InstanceTest testInstance(const TypePtr& type, const std::vector<TypePtr>& candidates) {
  // The alternatives that the value may turn out to be.
  std::vector<TypePtr> alternatives;
  if (const auto* optional = type->as<OptionalType>()) {
    alternatives = {optional->element(), types::None()};
  } else if (const auto* sum = type->as<UnionType>()) {
    alternatives = sum->contained();
  } else if (type->kind() == TypeKind::Number) {
    alternatives = {types::Int(), types::Float(), types::Complex()};
  } else {
    alternatives = {type};
  }
  std::vector<TypePtr> matching;
  std::vector<TypePtr> others;
  bool unsure = false;
  for (const TypePtr& alternative : alternatives) {
    bool covered = false;
    for (const TypePtr& candidate : candidates) {
      if (covers(candidate, alternative)) {
        covered = true;
      } else if (candidate->isSubtypeOf(*alternative) ||
                 (alternative->kind() == TypeKind::Any && isTypeGroup(candidate->kind()))) {
        // Some values of the alternative are of the candidate type: only the running program knows.
        unsure = true;
        matching.push_back(candidate);
      }
    }
    (covered ? matching : others).push_back(alternative);
  }
  InstanceTest out;
  out.always = !unsure && others.empty();
  out.never = !unsure && matching.empty();
  if (!out.always && !out.never) {
    bool groups = false;
    for (const TypePtr& t : matching) groups |= isTypeGroup(t->kind());
    if (!matching.empty() && !groups) out.when_true = unionOf(matching);
    if (!others.empty() && !unsure) out.when_false = unionOf(others);
    if (type->kind() == TypeKind::Number) out.when_false = nullptr;
  }
  return out;
}

}  // namespace wick
