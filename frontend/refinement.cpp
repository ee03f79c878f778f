#include "frontend/refinement.h"

namespace wick {

namespace {

const TypePtr* find(const std::vector<Refinement>& set, const std::string& name) {
  for (auto it = set.rbegin(); it != set.rend(); ++it) {
    if (it->name == name) return &it->type;
  }
  return nullptr;
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

RefinementSet::Refinements RefinementSet::all(const Refinements& a, const Refinements& b) {
  Refinements out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

RefinementSet::Refinements RefinementSet::common(const Refinements& a, const Refinements& b) {
  Refinements out;
  for (const Refinement& r : a) {
    const TypePtr* mine = find(a, r.name);
    const TypePtr* other = find(b, r.name);
    if (!other || find(out, r.name)) continue;
    if (auto unified = unifyTypes(*mine, *other, true)) out.push_back({r.name, *unified});
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
