#include "serialization/export_names.h"

#include <fmt/format.h>

#include "core/error.h"

namespace wick {

bool ExportNames::isNamed(const Type& type) {
  switch (type.kind()) {
    case TypeKind::Class:
    case TypeKind::Enum:
    case TypeKind::Interface:
      return true;
    case TypeKind::Tuple:
      return type.as<TupleType>()->isNamed();
    default:
      return false;
  }
}

const std::string& ExportNames::claim(const std::string& wanted) {
  claimed_ = wanted;
  if (taken_.insert(claimed_).second) return claimed_;
  renamed_ = true;
  const size_t dot = wanted.rfind('.');
  const std::string last = dot == std::string::npos ? wanted : wanted.substr(dot + 1);
  std::string prefix = dot == std::string::npos ? "__torch__" : wanted.substr(0, dot);
  const size_t mangled = prefix.rfind(".___torch_mangle_");
  if (mangled != std::string::npos && prefix.find('.', mangled + 1) == std::string::npos) {
    prefix.resize(mangled);
  }
  for (size_t i = 0;; ++i) {
    claimed_ = fmt::format("{}.___torch_mangle_{}.{}", prefix, i, last);
    if (taken_.insert(claimed_).second) return claimed_;
  }
}

const std::string& ExportNames::of(const Type& named) {
  if (auto it = types_.find(&named); it != types_.end()) return it->second;
  const std::string wanted = named.annotation();
  // They are kept alive too, so that no other type can take an address.
  std::vector<TypePtr>& owners = owners_[wanted];
  for (const TypePtr& other : owners) {
    if (other->kind() != named.kind() || !(*other == named)) continue;
    std::string name = types_.at(other.get());
    owners.push_back(named.shared_from_this());
    return types_.emplace(&named, std::move(name)).first->second;
  }
  owners.push_back(named.shared_from_this());
  return types_.emplace(&named, claim(wanted)).first->second;
}

const std::string& ExportNames::of(const Function& function) {
  if (auto it = functions_.find(&function); it != functions_.end()) return it->second;
  return functions_.emplace(&function, claim(function.qualifiedName())).first->second;
}

std::string ExportNames::annotation(const Type& type) {
  if (isNamed(type)) return of(type);
  if (!renamed_ || type.contained().empty()) return type.annotation();
  std::string arguments;
  for (const TypePtr& part : type.contained()) {
    if (!arguments.empty()) arguments += ", ";
    arguments += annotation(*part);
  }
  const std::string text = type.annotation();
  return text.substr(0, text.find('[')) + "[" + arguments + "]";
}

}  // namespace wick
