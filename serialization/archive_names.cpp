#include "serialization/archive_names.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "serialization/operator_upgrades.h"
#include "serialization/source_import.h"

namespace wick {
namespace {

// The number that a tensor without dimensions holds; nullopt for other constants.
std::optional<IValue> numberIn(const std::optional<IValue>& constant) {
  if (!constant || !constant->isTensor()) return std::nullopt;
  const Tensor t = constant->toTensor();
  if (!t.defined() || t.kind() != TensorKind::Dense || t.dim() != 0 || !t.device().isCpu()) {
    return std::nullopt;
  }
  if (isComplex(t.dtype())) {
    return IValue(t.to(DType::ComplexDouble).item<std::complex<double>>());
  }
  if (isFloating(t.dtype())) return IValue(t.to(DType::Double).item<double>());
  if (isIntegral(t.dtype(), false)) return IValue(t.to(DType::Long).item<int64_t>());
  return std::nullopt;
}

// Tracing makes tensors of numbers, and an archive does not say which constants were numbers.
// PyTorch's executor takes those without dimensions for numbers where they are the second operand
// of these operators, which shows in the dtype: int64 times 0.5 is float32, not float64.
class OperatorOnNumbers : public SugaredValue {
 public:
  explicit OperatorOnNumbers(Symbol symbol) : symbol_(symbol) {}
  static bool takes(Symbol symbol) {
    static const std::unordered_set<std::string> kNames = {"aten::add", "aten::sub", "aten::mul",
                                                           "aten::div"};
    return kNames.contains(std::string(symbol.qualString()));
  }
  std::string kind() const override { return BuiltinFunction(symbol_).kind(); }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& fn, std::vector<NamedValue> args,
                       std::vector<NamedValue> kwargs, size_t num_binders) override {
    const bool plain = std::ranges::all_of(
        kwargs, [](const NamedValue& k) { return k.name.value_or("") == "alpha"; });
    if (plain && args.size() >= 2 && args[0].type()->kind() == TypeKind::Tensor) {
      if (std::optional<IValue> number = numberIn(constantOf(args[1].value))) {
        args[1].value = fn.graph()->insertConstant(std::move(*number));
      }
    }
    return BuiltinFunction(symbol_).call(range, fn, std::move(args), std::move(kwargs),
                                         num_binders);
  }

 private:
  Symbol symbol_;
};

// torch.device("cuda:0"): the device that the loader's map puts in its place. Text that is computed, or that
// names no device, is the operator's.
class DeviceConstant : public SugaredValue {
 public:
  explicit DeviceConstant(std::weak_ptr<SourceImporter> importer)
      : importer_(std::move(importer)) {}
  std::string kind() const override { return "type of devices"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& fn, std::vector<NamedValue> args,
                       std::vector<NamedValue> kwargs, size_t num_binders) override {
    if (const std::optional<std::string> name = kwargs.empty() ? nameOf(args) : std::nullopt) {
      auto importer = importer_.lock();
      WICK_ASSERT(importer != nullptr, "the importer is gone");
      if (const std::optional<Device> device = importer->device(*name)) {
        return std::make_shared<SimpleValue>(fn.graph()->insertConstant(*device));
      }
    }
    return BuiltinFunction(Symbol::fromQualString("aten::device"))
        .call(range, fn, std::move(args), std::move(kwargs), num_binders);
  }

 private:
  // ("cuda:1") or ("cuda", 1).
  static std::optional<std::string> nameOf(const std::vector<NamedValue>& args) {
    if (args.empty() || args.size() > 2) return std::nullopt;
    const std::optional<IValue> name = constantOf(args[0].value);
    if (!name || !name->isString()) return std::nullopt;
    if (args.size() == 1) return name->toString();
    const std::optional<IValue> index = constantOf(args[1].value);
    if (!index || !index->isInt()) return std::nullopt;
    return name->toString() + ":" + std::to_string(index->toInt());
  }

  std::weak_ptr<SourceImporter> importer_;
};

// x.cuda(): a move to the device that the map puts in the place of "cuda".
class MoveToCuda : public SugaredValue {
 public:
  explicit MoveToCuda(std::weak_ptr<SourceImporter> importer) : importer_(std::move(importer)) {}
  std::string kind() const override { return "builtin function 'cuda'"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& fn, std::vector<NamedValue> args,
                       std::vector<NamedValue> kwargs, size_t num_binders) override {
    auto importer = importer_.lock();
    WICK_ASSERT(importer != nullptr, "the importer is gone");
    constexpr Device kCurrent{DeviceType::CUDA, -1};
    const Device device = importer->device("cuda").value_or(kCurrent);
    const char* name = "aten::cuda";
    if (device != kCurrent && args.size() == 1 && kwargs.empty()) {
      name = "aten::to";
      args.emplace_back(range, fn.graph()->insertConstant(device));
    }
    return BuiltinFunction(Symbol::fromQualString(name))
        .call(range, fn, std::move(args), std::move(kwargs), num_binders);
  }

 private:
  std::weak_ptr<SourceImporter> importer_;
};

// `torch` and `ops.ns`: every member is the operator of that name. Unlike the `torch` of programs,
// printed source spells all operators out, torch.__is__ and torch.append among them.
class OperatorNamespace : public SugaredValue {
 public:
  OperatorNamespace(std::string ns, SourceImporter& importer)
      : ns_(std::move(ns)), version_(importer.version()), importer_(importer.weak_from_this()) {}
  std::string kind() const override { return "operator namespace '" + ns_ + "'"; }
  SugaredValuePtr attr(const SourceRange&, GraphFunction&, const std::string& field) override {
    // The two operators that PyTorch prints under another name, torch.autograd.grad and backward.
    if (ns_ == "aten" && field == "autograd") return shared_from_this();
    if (ns_ == "wick" && (field == "checkpoint" || field == "custom_function")) {
      return std::make_shared<SpecialForm>(Symbol::prim(field));
    }
    if (ns_ == "aten" && field == "device") return std::make_shared<DeviceConstant>(importer_);
    if (ns_ == "aten" && field == "cuda") return std::make_shared<MoveToCuda>(importer_);
    const Symbol symbol = Symbol::fromQualString(ns_ + "::" + field);
    if (SugaredValuePtr upgraded = upgradedOperator(symbol, version_)) return upgraded;
    if (OperatorOnNumbers::takes(symbol)) return std::make_shared<OperatorOnNumbers>(symbol);
    return std::make_shared<BuiltinFunction>(symbol);
  }
  bool hasAttr(const SourceRange&, GraphFunction&, const std::string&) override { return true; }

 private:
  std::string ns_;
  int64_t version_;
  std::weak_ptr<SourceImporter> importer_;
};

class OpsNamespace : public SugaredValue {
 public:
  explicit OpsNamespace(std::weak_ptr<SourceImporter> importer) : importer_(std::move(importer)) {}
  std::string kind() const override { return "operators"; }
  SugaredValuePtr attr(const SourceRange&, GraphFunction&, const std::string& field) override {
    auto importer = importer_.lock();
    WICK_ASSERT(importer != nullptr, "the importer is gone");
    return std::make_shared<OperatorNamespace>(field, *importer);
  }

 private:
  std::weak_ptr<SourceImporter> importer_;
};

class ConstantTable : public SugaredValue {
 public:
  explicit ConstantTable(std::weak_ptr<SourceImporter> importer) : importer_(std::move(importer)) {}
  std::string kind() const override { return "constants"; }
  SugaredValuePtr attr(const SourceRange& range, GraphFunction& fn,
                       const std::string& field) override {
    auto importer = importer_.lock();
    WICK_ASSERT(importer != nullptr, "the importer is gone");
    return std::make_shared<SimpleValue>(
        fn.graph()->insertConstant(importer->constant(range, field)));
  }

 private:
  std::weak_ptr<SourceImporter> importer_;
};

class ImportedClass : public ClassValue {
 public:
  ImportedClass(ClassTypePtr type, std::weak_ptr<SourceImporter> importer)
      : ClassValue(std::move(type)), importer_(std::move(importer)) {}
  SugaredValuePtr attr(const SourceRange& range, GraphFunction& fn,
                       const std::string& field) override {
    if (field == "__new__") return ClassValue::attr(range, fn, field);
    // Hooks are called as functions of their class.
    for (const auto* hooks : {&type()->forwardPreHooks(), &type()->forwardHooks()}) {
      for (Function* hook : *hooks) {
        if (hook->name() == field) return std::make_shared<FunctionValue>(hook);
      }
    }
    auto importer = importer_.lock();
    WICK_ASSERT(importer != nullptr, "the importer is gone");
    if (GraphFunction* function = importer->findFunction(type()->name() + "." + field)) {
      return std::make_shared<FunctionValue>(function);
    }
    return ClassValue::attr(range, fn, field);
  }

 private:
  std::weak_ptr<SourceImporter> importer_;
};

// A dotted prefix of the archive's own names.
class Namespace : public SugaredValue {
 public:
  Namespace(std::string name, std::weak_ptr<SourceImporter> importer)
      : name_(std::move(name)), importer_(std::move(importer)) {}
  std::string kind() const override { return "module '" + name_ + "'"; }

  SugaredValuePtr attr(const SourceRange& range, GraphFunction&,
                       const std::string& field) override {
    auto importer = importer_.lock();
    WICK_ASSERT(importer != nullptr, "the importer is gone");
    const std::string full = name_ + "." + field;
    if (TypePtr type = importer->findType(full)) return typeValue(range, type);
    if (GraphFunction* function = importer->findFunction(full)) {
      return std::make_shared<FunctionValue>(function);
    }
    return std::make_shared<Namespace>(full, importer_);
  }

 private:
  SugaredValuePtr typeValue(const SourceRange& range, const TypePtr& type) const {
    switch (type->kind()) {
      case TypeKind::Class:
        return std::make_shared<ImportedClass>(type->as<ClassType>()->shared(), importer_);
      case TypeKind::Tuple:
        return std::make_shared<NamedTupleConstructor>(
            std::static_pointer_cast<const TupleType>(type));
      case TypeKind::Enum:
        return std::make_shared<EnumClassValue>(std::static_pointer_cast<const EnumType>(type));
      default:
        throwCompileError(range, "{} cannot be used as a value", type->annotation());
    }
  }

  std::string name_;
  std::weak_ptr<SourceImporter> importer_;
};

}  // namespace

SugaredValuePtr archiveName(const std::string& name, GraphFunction& fn, const SourceRange& range,
                            SourceImporter& importer) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  auto constant = [&](IValue value) {
    return std::make_shared<SimpleValue>(fn.graph()->insertConstant(std::move(value)));
  };
  if (name == "torch") return std::make_shared<OperatorNamespace>("aten", importer);
  if (name == "ops") return std::make_shared<OpsNamespace>(importer.weak_from_this());
  if (name == "CONSTANTS") return std::make_shared<ConstantTable>(importer.weak_from_this());
  if (name == "__torch__") return std::make_shared<Namespace>(name, importer.weak_from_this());
  if (name == "inf") return constant(kInf);
  if (name == "nan") return constant(kNaN);
  if (name == "infj") return constant(std::complex<double>(0, kInf));
  if (name == "nanj") return constant(std::complex<double>(0, kNaN));
  if (name == "fork") return std::make_shared<SpecialForm>(prim::fork);
  if (name == "annotate") return std::make_shared<SpecialForm>(Symbol::prim("annotate"));
  if (name == "unchecked_cast") return std::make_shared<SpecialForm>(prim::unchecked_cast);
  if (name == "uninitialized") return std::make_shared<SpecialForm>(prim::Uninitialized);
  if (name == "rpc_async" || name == "rpc_sync" || name == "rpc_remote") {
    throwCompileError(range, "{}: remote calls are not supported", name);
  }
  return nullptr;
}

}  // namespace wick
