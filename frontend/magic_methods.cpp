#include "frontend/magic_methods.h"

#include "frontend/schema_matching.h"

namespace wick {

namespace {

bool isObject(const TypePtr& type) {
  return type->kind() == TypeKind::Class || type->kind() == TypeKind::Interface;
}

}  // namespace

Value* emitMagic(const SourceRange& range, GraphFunction& fn, const std::string& method,
                 Symbol fallback, const std::vector<NamedValue>& args) {
  if (!args.empty() && isObject(args[0].type())) {
    std::vector<NamedValue> rest(args.begin() + 1, args.end());
    return SimpleValue(args[0].value)
        .attr(range, fn, method)
        ->call(range, fn, std::move(rest), {}, 1)
        ->asValue(range, fn);
  }
  return emitBuiltinCall(range, *fn.graph(), fallback, args);
}

SugaredValuePtr MagicFunction::call(const SourceRange& range, GraphFunction& fn,
                                    std::vector<NamedValue> args, std::vector<NamedValue> kwargs,
                                    size_t num_binders) {
  if (!args.empty() && isObject(args[0].type())) {
    std::vector<NamedValue> rest(args.begin() + 1, args.end());
    return SimpleValue(args[0].value)
        .attr(range, fn, method_)
        ->call(range, fn, std::move(rest), std::move(kwargs), num_binders);
  }
  return fallback_->call(range, fn, std::move(args), std::move(kwargs), num_binders);
}

}  // namespace wick
