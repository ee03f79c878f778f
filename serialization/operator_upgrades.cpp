#include "serialization/operator_upgrades.h"

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "frontend/compile.h"
#include "serialization/format_version.h"

namespace wick {
namespace {

// What changed, and when: serialization/format_version.cpp.
constexpr const char* kUpgrades = R"(
def div_tensor(self: Tensor, other: Tensor) -> Tensor:
  if self.is_floating_point() or other.is_floating_point():
    return torch.true_divide(self, other)
  return torch.div(self, other, rounding_mode="trunc")

def div_float(self: Tensor, other: float) -> Tensor:
  return torch.true_divide(self, other)

def div_int(self: Tensor, other: int) -> Tensor:
  if self.is_floating_point():
    return torch.true_divide(self, other)
  return torch.div(self, other, rounding_mode="trunc")

def div_tensor_out(self: Tensor, other: Tensor, *, out: Tensor) -> Tensor:
  if self.is_floating_point() or other.is_floating_point() or out.is_floating_point():
    return torch.true_divide(self, other, out=out)
  return torch.div(self, other, rounding_mode="trunc", out=out)

def div_inplace_tensor(self: Tensor, other: Tensor) -> Tensor:
  if self.is_floating_point() or other.is_floating_point():
    return self.true_divide_(other)
  return self.div_(other, rounding_mode="trunc")

def div_inplace_float(self: Tensor, other: float) -> Tensor:
  return self.true_divide_(other)

def div_inplace_int(self: Tensor, other: int) -> Tensor:
  if self.is_floating_point():
    return self.true_divide_(other)
  return self.div_(other, rounding_mode="trunc")

def full_int(size: List[int], fill_value: int, *, dtype: Optional[int] = None,
             layout: Optional[int] = None, device: Optional[Device] = None,
             pin_memory: Optional[bool] = None) -> Tensor:
  if dtype is None:
    return torch.full(size, float(fill_value), dtype=dtype, layout=layout, device=device,
                      pin_memory=pin_memory)
  return torch.full(size, fill_value, dtype=dtype, layout=layout, device=device,
                    pin_memory=pin_memory)

def linspace_default(start: number, end: number, steps: Optional[int] = None, *,
                     dtype: Optional[int] = None, layout: Optional[int] = None,
                     device: Optional[Device] = None,
                     pin_memory: Optional[bool] = None) -> Tensor:
  n = 100 if steps is None else steps
  return torch.linspace(start, end, n, dtype=dtype, layout=layout, device=device,
                        pin_memory=pin_memory)

def linspace_out(start: number, end: number, steps: Optional[int] = None, *,
                 out: Tensor) -> Tensor:
  n = 100 if steps is None else steps
  return torch.linspace(start, end, n, out=out)

def logspace_default(start: number, end: number, steps: Optional[int] = None, base: float = 10.0,
                     *, dtype: Optional[int] = None, layout: Optional[int] = None,
                     device: Optional[Device] = None,
                     pin_memory: Optional[bool] = None) -> Tensor:
  n = 100 if steps is None else steps
  return torch.logspace(start, end, n, base, dtype=dtype, layout=layout, device=device,
                        pin_memory=pin_memory)

def logspace_out(start: number, end: number, steps: Optional[int] = None, base: float = 10.0, *,
                 out: Tensor) -> Tensor:
  n = 100 if steps is None else steps
  return torch.logspace(start, end, n, base, out=out)
)";

// What calls meant before; overloads that the functions do not cover had one meaning all the time.
using Functions = std::vector<std::string>;
const std::unordered_map<std::string_view, Functions>& upgrades() {
  static const std::unordered_map<std::string_view, Functions> table = {
      {"aten::div", {"div_tensor", "div_int", "div_float", "div_tensor_out"}},
      {"aten::div_", {"div_inplace_tensor", "div_inplace_int", "div_inplace_float"}},
      {"aten::full", {"full_int"}},
      {"aten::linspace", {"linspace_default", "linspace_out"}},
      {"aten::logspace", {"logspace_default", "logspace_out"}},
  };
  return table;
}

Function* upgradeFunction(const std::string& name) {
  // Lives as long as the process: graphs refer to these functions.
  static const auto* unit = new std::shared_ptr<CompilationUnit>(compileSource(kUpgrades));
  Function* function = (*unit)->findFunction("__torch__." + name);
  WICK_ASSERT(function != nullptr, "no upgrade function {}", name);
  return function;
}

class UpgradedOperator : public SugaredValue {
 public:
  UpgradedOperator(Symbol symbol, const Functions& before) : symbol_(symbol), before_(before) {}
  std::string kind() const override { return "builtin function"; }

  SugaredValuePtr call(const SourceRange& range, GraphFunction& fn, std::vector<NamedValue> args,
                       std::vector<NamedValue> kwargs, size_t num_binders) override {
    if (!hasOldMeaning(args, kwargs)) {
      return BuiltinFunction(symbol_).call(range, fn, std::move(args), std::move(kwargs),
                                           num_binders);
    }
    std::vector<Function*> functions;
    for (const std::string& name : before_) functions.push_back(upgradeFunction(name));
    return FunctionValue(std::move(functions))
        .call(range, fn, std::move(args), std::move(kwargs), num_binders);
  }

 private:
  // Calls of overloads that never changed: division of numbers, or with a rounding mode; full of
  // anything but an int.
  bool hasOldMeaning(const std::vector<NamedValue>& args,
                     const std::vector<NamedValue>& kwargs) const {
    const bool is_full = symbol_.name() == "full";
    const bool is_division = symbol_.name().starts_with("div");
    if (is_division) {
      for (const NamedValue& k : kwargs) {
        if (k.name == "rounding_mode") return false;
      }
      return !args.empty() && args[0].type()->kind() == TypeKind::Tensor;
    }
    if (is_full) {
      for (const NamedValue& k : kwargs) {
        if (k.name == "out" || k.name == "names") return false;
      }
      return args.size() == 2 && args[1].type()->kind() == TypeKind::Int;
    }
    return true;
  }

  Symbol symbol_;
  const Functions& before_;
};

}  // namespace

SugaredValuePtr upgradedOperator(Symbol symbol, int64_t version) {
  const std::optional<int64_t> changed = changedInVersion(symbol.qualString());
  if (!changed || version >= *changed) return nullptr;
  // The one form of gelu is what a call of it without more arguments still means.
  auto before = upgrades().find(symbol.qualString());
  return before == upgrades().end() ? nullptr
                                    : std::make_shared<UpgradedOperator>(symbol, before->second);
}

}  // namespace wick
