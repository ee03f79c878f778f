#include "tests/optimizer/check_types.h"

#include <fmt/format.h>

#include <random>
#include <unordered_map>

#include "core/error.h"
#include "core/scalar.h"
#include "ir/graph.h"
#include "ir/symbolic_sizes.h"
#include "ir/verifier.h"
#include "passes/propagate_types.h"
#include "tests/every_operator.h"

namespace wick {

namespace {

std::string fullName(const Operator& op) {
  const std::string& overload = op.schema().overload();
  return overload.empty() ? op.schema().name() : op.schema().name() + "." + overload;
}

bool hasRule(const Operator& op) {
  return op.record().shape != nullptr || op.record().scalar != nullptr;
}

bool givesTensors(const Operator& op) {
  for (const Argument& r : op.schema().returns()) {
    if (r.type->kind() == TypeKind::Tensor || r.type->str() == "Tensor[]") return true;
  }
  return false;
}

// Arguments that fit together more often than not.
class Arguments {
 public:
  explicit Arguments(uint64_t seed) : random_(seed) {
    rank_ = below(5);
    for (int64_t i = 0; i < rank_; ++i) base_.push_back(below(12) == 0 ? 0 : 1 + below(4));
    dtype_ = randomDType();
  }

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int64_t n) { return below(n) == 0; }

  // Arguments of a convolution with this many dimensions of space.
  void convolve(const Operator& op) {
    std::string_view name = op.schema().name();
    spatial_ = 1 + below(3);
    for (int64_t n = 1; n <= 3; ++n) {
      if (name.find(fmt::format("{}d", n)) != std::string_view::npos) spatial_ = n;
    }
    dtype_ = chance(2) ? DType::Float : DType::Double;
    groups_ = chance(3) ? 2 : 1;
    std::optional<size_t> padding = op.schema().argumentIndex("padding");
    padding_text_ = padding && op.schema().arguments()[*padding].type->kind() == TypeKind::String;
  }

  // Arguments of layers that go over sequences.
  void recur(const Operator& op) {
    Sequence s;
    s.lstm = op.schema().name() == "aten::lstm";
    s.gates = s.lstm ? 4 : op.schema().name() == "aten::gru" ? 3 : 1;
    s.layers = 1 + below(2);
    s.directions = 1 + below(2);
    s.batch = 1 + below(3);
    s.features = 1 + below(3);
    s.hidden = 1 + below(3);
    s.projected = s.lstm && s.hidden > 1 && chance(3) ? s.hidden - 1 : s.hidden;
    s.biases = chance(2);
    s.batch_first = chance(2);
    sequence_ = s;
    dtype_ = chance(2) ? DType::Float : DType::Double;
  }

  IValue make(const Argument& a) {
    if (spatial_ > 0) {
      if (std::optional<IValue> v = convolutionArgument(a.name)) return *v;
    }
    if (sequence_) {
      if (std::optional<IValue> v = recurrentArgument(a.name)) return *v;
    }
    if (a.default_value && chance(2)) return *a.default_value;
    return make(*a.type, a.name, a.fixed_size.value_or(0));
  }

  DType randomDType() {
    static constexpr DType kMany[] = {
        DType::Float,        DType::Float,    DType::Float,  DType::Double, DType::Long,
        DType::Long,         DType::Bool,     DType::Int,    DType::Half,   DType::Byte,
        DType::ComplexFloat, DType::BFloat16, DType::Double, DType::Short,  DType::ComplexDouble};
    return kMany[below(std::size(kMany))];
  }

 private:
  std::optional<IValue> convolutionArgument(const std::string& name) {
    constexpr int64_t kChannels = 4;
    if (name == "input" || name == "self" || name == "weight") {
      bool weight = name == "weight";
      DimVector sizes{weight ? kChannels : 1 + below(3), weight ? kChannels / groups_ : kChannels};
      for (int64_t i = 0; i < spatial_; ++i) sizes.push_back(weight ? 1 + below(3) : 4 + below(4));
      return IValue(tensor(sizes, dtype_));
    }
    if (name == "bias") return chance(2) ? IValue() : IValue(tensor({kChannels}, dtype_));
    if (name == "groups") return IValue(groups_);
    if (name == "stride" || name == "dilation" || name == "padding" || name == "output_padding") {
      if (name == "padding" && padding_text_) return IValue(chance(2) ? "same" : "valid");
      bool none = name == "output_padding";
      DimVector values;
      for (int64_t i = 0; i < spatial_; ++i) {
        values.push_back(none ? 0 : below(2) + (name == "padding" ? 0 : 1));
      }
      return IValue(makeIntList(values));
    }
    return std::nullopt;
  }

  std::optional<IValue> recurrentArgument(const std::string& name) {
    const Sequence& s = *sequence_;
    if (name == "num_layers") return IValue(s.layers);
    if (name == "bidirectional") return IValue(s.directions == 2);
    if (name == "has_biases") return IValue(s.biases);
    if (name == "batch_first") return IValue(s.batch_first);
    if (name == "dropout") return IValue(0.0);
    if (name == "input") {
      const int64_t length = 1 + below(3);
      return IValue(tensor(s.batch_first ? DimVector{s.batch, length, s.features}
                                         : DimVector{length, s.batch, s.features},
                           dtype_));
    }
    if (name == "hx") {
      const auto state = [&](int64_t width) {
        // Of another batch at times, which may broadcast or raise.
        return tensor({s.layers * s.directions, chance(8) ? 1 : s.batch, width}, dtype_);
      };
      if (!s.lstm) return IValue(state(s.hidden));
      return IValue(makeTensorList({state(s.projected), state(s.hidden)}));
    }
    if (name != "params") return std::nullopt;
    std::vector<Tensor> params;
    for (int64_t i = 0; i < s.layers * s.directions; ++i) {
      const int64_t in = i < s.directions ? s.features : s.projected * s.directions;
      params.push_back(tensor({s.gates * s.hidden, in}, dtype_));
      params.push_back(tensor({s.gates * s.hidden, s.projected}, dtype_));
      for (int b = 0; s.biases && b < 2; ++b) {
        params.push_back(tensor({s.gates * s.hidden}, dtype_));
      }
      if (s.projected != s.hidden) params.push_back(tensor({s.projected, s.hidden}, dtype_));
    }
    return IValue(makeTensorList(params));
  }

  DimVector shape() {
    DimVector s = base_;
    switch (below(6)) {
      case 0:  // broadcasts
        for (int64_t& d : s) d = chance(2) ? 1 : d;
        break;
      case 1:
        if (!s.empty()) s.erase(0);
        break;
      case 2:
        std::reverse(s.begin(), s.end());
        break;
      case 3:
        s = DimVector();
        for (int64_t i = below(5); i > 0; --i) s.push_back(1 + below(3));
        break;
      default:
        break;
    }
    return s;
  }

  Tensor tensor(const DimVector& sizes, DType dtype) {
    Tensor t = Tensor::empty(sizes, DType::Double);
    for (int64_t i = 0; i < t.numel(); ++i) {
      t.data<double>()[i] = static_cast<double>(below(9)) / 2 - (chance(3) ? 2 : 0);
    }
    if (isIntegral(dtype, false)) {
      for (int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = static_cast<double>(below(3));
    }
    t = t.to(dtype);
    if (sizes.size() > 1 && chance(4)) t = t.transpose(0, -1).contiguous().transpose(0, -1);
    if (sizes.size() == 4 && chance(4)) t = t.contiguous(MemoryFormat::ChannelsLast);
    return t;
  }

  IValue list(const Type& element, const std::string& name, int64_t fixed) {
    if (element.kind() == TypeKind::Int) {
      DimVector values;
      int64_t n = fixed > 0 ? fixed : chance(3) ? rank_ : below(5);
      bool dims = name == "dim" || name == "dims" || name.ends_with("dims");
      bool sizes = name == "size" || name == "shape" || name == "sizes";
      if (sizes && chance(2)) return IValue(makeIntList(chance(2) ? shape() : base_));
      for (int64_t i = 0; i < n; ++i) {
        values.push_back(dims ? below(std::max<int64_t>(rank_, 1)) - (chance(3) ? rank_ : 0)
                              : below(4) - (chance(6) ? 1 : 0));
      }
      return IValue(makeIntList(values));
    }
    if (element.kind() == TypeKind::Tensor) {
      std::vector<Tensor> tensors;
      bool same = chance(2);
      for (int64_t i = 1 + below(3); i > 0; --i) {
        tensors.push_back(tensor(same ? base_ : shape(), chance(4) ? randomDType() : dtype_));
      }
      return IValue(makeTensorList(tensors));
    }
    std::vector<IValue> values;
    for (int64_t i = below(4); i > 0; --i) values.push_back(make(element, name, 0));
    return IValue(makeRef<ListObject>(element.shared_from_this(), std::move(values)));
  }

  IValue make(const Type& type, const std::string& name, int64_t fixed) {
    switch (type.kind()) {
      case TypeKind::Tensor:
        return IValue(tensor(shape(), chance(4) || name == "index" || name == "indices"
                                          ? (chance(2) ? DType::Long : randomDType())
                                          : dtype_));
      case TypeKind::Int:
        if (name == "dtype") return IValue(static_cast<int64_t>(randomDType()));
        if (name == "memory_format") return IValue(below(3));
        if (name.starts_with("dim") || name == "start_dim" || name == "end_dim") {
          return IValue(below(rank_ + 1) - (chance(2) ? rank_ : 0));
        }
        return IValue(below(5) - (chance(6) ? 1 : 0));
      case TypeKind::Float:
        return IValue(static_cast<double>(below(8)) / 4);
      case TypeKind::Bool:
        return IValue(chance(2));
      case TypeKind::Number:
        if (chance(8)) return IValue(std::complex<double>(1.0, 0.5));
        return chance(2) ? IValue(below(4)) : IValue(static_cast<double>(below(8)) / 4);
      case TypeKind::Complex:
        return IValue(std::complex<double>(1.0, 0.5));
      case TypeKind::String: {
        static const char* kTexts[] = {"none", "mean",   "sum",      "floor",   "trunc",
                                       "tanh", "linear", "constant", "reflect", "fro",
                                       "nuc",  "ij",     "same"};
        return IValue(kTexts[below(std::size(kTexts))]);
      }
      case TypeKind::Device:
        return IValue(Device());
      case TypeKind::Optional:
        if (type.contained()[0]->kind() == TypeKind::Generator || chance(2)) return IValue();
        return make(*type.contained()[0], name, fixed);
      case TypeKind::List:
        return list(*type.contained()[0], name, fixed);
      case TypeKind::None:
        return IValue();
      default:
        throw RuntimeError(fmt::format("no random {}", type.str()));
    }
  }

  struct Sequence {
    bool lstm = false, biases = false, batch_first = false;
    int64_t gates = 1, layers = 1, directions = 1, batch = 1, features = 1, hidden = 1;
    int64_t projected = 1;  // features of the hidden state
  };

  std::mt19937_64 random_;
  int64_t spatial_ = 0;  // not 0: a convolution
  std::optional<Sequence> sequence_;
  int64_t groups_ = 1;
  bool padding_text_ = false;
  int64_t rank_;
  DimVector base_;
  DType dtype_;
};

class OneCall {
 public:
  OneCall(const Operator& op, uint64_t seed) : op_(op), arguments_(seed), graph_(new Graph()) {}

  // "" when the call raised or all is well.
  std::string run(TypeCheckCounts& counts) {
    makeArguments();
    std::vector<IValue> results(op_.schema().returns().size());
    if (!call(results)) return "";
    ++counts.calls;
    counts.complete += complete_;
    Node* node = makeNode();
    std::vector<std::pair<Value*, Tensor>> outputs;
    for (size_t i = 0; i < results.size(); ++i) {
      node->output(i)->setType(op_.schema().returns()[i].type);
      take(node->output(i), results[i], outputs);
    }
    SymbolicSizes sizes(lowestSymbol(*graph_));
    propagateTypes(*graph_, sizes);
    verify(*graph_);
    return compare(outputs, sizes, counts);
  }

  // "" when the call raised or wrote no more than it says.
  std::string runForWrites(uint64_t& calls) {
    makeArguments();
    std::vector<std::string> before;
    for (const IValue& a : args_) before.push_back(bytesOf(a));
    std::vector<IValue> results(op_.schema().returns().size());
    if (!call(results)) return "";
    ++calls;
    Node* node = makeNode();
    const uint64_t written = op_.writtenArguments(*node);
    for (size_t i = 0; i < args_.size(); ++i) {
      if ((written >> i & 1) != 0 || bytesOf(args_[i]) == before[i]) continue;
      return fmt::format("{} writes {} unsaid\n{}", fullName(op_), op_.schema().arguments()[i].name,
                         graph_->str());
    }
    return "";
  }

 private:
  void makeArguments() {
    if (op_.schema().argumentIndex("weight") && op_.schema().argumentIndex("stride")) {
      arguments_.convolve(op_);
    }
    if (op_.schema().argumentIndex("params") && op_.schema().argumentIndex("batch_first")) {
      arguments_.recur(op_);
    }
    for (const Argument& a : op_.schema().arguments()) args_.push_back(arguments_.make(a));
    complete_ = arguments_.chance(2);
    for (size_t i = 0; i < args_.size(); ++i) {
      inputs_.push_back(input(args_[i], op_.schema().arguments()[i].type));
    }
  }

  // False when it raises.
  bool call(std::vector<IValue>& results) const {
    try {
      std::vector<IValue> copies = args_;
      op_.call(copies.data(), copies.size(), results.data(), results.size());
    } catch (const Error&) {
      return false;
    }
    return true;
  }

  Node* makeNode() {
    Node* node =
        graph_->insertNode(graph_->create(op_.symbol(), inputs_, op_.schema().returns().size()));
    node->setOperator(&op_);
    return node;
  }

  // The memory of a tensor, or of the tensors in a list.
  static std::string bytesOf(const IValue& v) {
    std::string bytes;
    if (v.isTensor()) {
      const Storage& s = *v.toTensor().storage();
      bytes = formatInts(v.toTensor().sizes()) +
              std::string(static_cast<const char*>(s.data()), s.bytes());
    } else if (v.isList()) {
      for (const IValue& e : v.elements()) bytes += bytesOf(e);
    }
    return bytes;
  }

  void take(Value* v, const IValue& result, std::vector<std::pair<Value*, Tensor>>& outputs) {
    if (result.isTensor() && v->type()->kind() == TypeKind::Tensor) {
      outputs.emplace_back(v, result.toTensor());
    } else if (v->type()->str() == "Tensor[]" && result.isList()) {
      Node* unpack =
          graph_->insertNode(graph_->create(prim::ListUnpack, {v}, result.elements().size()));
      for (size_t i = 0; i < result.elements().size(); ++i) {
        outputs.emplace_back(unpack->output(i), result.elements()[i].toTensor());
      }
    }
  }

  std::string compare(const std::vector<std::pair<Value*, Tensor>>& outputs,
                      const SymbolicSizes& sizes, TypeCheckCounts& counts) {
    TypeChecker symbols(sizes);
    for (auto& [v, t] : tensors_) {
      if (std::string wrong = symbols.check(*v->type(), t); !wrong.empty()) {
        return fmt::format("an input {}\n{}", wrong, graph_->str());
      }
    }
    bool dtypes = !outputs.empty(), ranks = dtypes, all = dtypes;
    for (auto& [v, t] : outputs) {
      if (!t.defined()) continue;
      if (std::string wrong = symbols.check(*v->type(), t); !wrong.empty()) {
        return fmt::format("{}: {}\n{}", fullName(op_), wrong, graph_->str());
      }
      const TensorType::Facts& f = v->type()->as<TensorType>()->facts();
      dtypes = dtypes && f.dtype;
      ranks = ranks && f.dim;
      for (int64_t d = 0; d < t.dim(); ++d) {
        all = all && f.sizes && (*f.sizes)[d] && *(*f.sizes)[d] >= 0;
      }
    }
    if (complete_) {
      counts.dtypes += dtypes;
      counts.ranks += ranks;
      counts.sizes += all;
    }
    return "";
  }

  Value* input(const IValue& v, const TypePtr& declared) {
    if (v.isTensor() && v.toTensor().defined()) {
      Value* in = graph_->addInput("", told(v.toTensor()));
      tensors_.emplace_back(in, v.toTensor());
      return in;
    }
    if (v.isList() && !v.elements().empty() && v.elements()[0].isTensor()) {
      std::vector<Value*> elements;
      for (const IValue& e : v.elements()) elements.push_back(input(e, types::Tensor()));
      return graph_->insertNode(graph_->createList(types::Tensor(), elements))->output();
    }
    if (v.isNone()) return graph_->insertConstant(v);
    if (v.isList())
      return graph_->insertConstant(
          v, declared->kind() == TypeKind::List ? declared : declared->contained()[0]);
    return graph_->insertConstant(v);
  }

  // All that is true of the tensor or some of it, sizes also as symbols.
  TypePtr told(const Tensor& t) {
    TensorType::Facts f = typeOfTensor(t)->as<TensorType>()->facts();
    if (complete_) return TensorType::create(std::move(f));
    if (arguments_.chance(4)) f.dtype.reset();
    if (arguments_.chance(6)) f.device.reset();
    f.strides.reset();
    for (Size& s : *f.sizes) {
      if (arguments_.chance(4)) {
        s.reset();
      } else if (arguments_.chance(2)) {
        auto [it, added] = symbols_.emplace(*s, 0);
        if (added) it->second = -static_cast<int64_t>(symbols_.size());
        s = it->second;
      }
    }
    if (arguments_.chance(6)) {
      f.sizes.reset();
      if (arguments_.chance(2)) f.dim.reset();
    }
    return TensorType::create(std::move(f));
  }

  const Operator& op_;
  Arguments arguments_;
  std::shared_ptr<Graph> graph_;
  std::vector<IValue> args_;
  std::vector<Value*> inputs_;
  bool complete_ = false;
  std::vector<std::pair<Value*, Tensor>> tensors_;
  std::unordered_map<int64_t, int64_t> symbols_;  // a size's name
};

}  // namespace

std::string TypeChecker::check(const Type& type, const Tensor& t) {
  const auto* known = type.as<TensorType>();
  if (!known) return "";
  const TensorType::Facts& f = known->facts();
  bool right = (!f.dtype || *f.dtype == t.dtype()) && (!f.device || *f.device == t.device()) &&
               (!f.dim || static_cast<int64_t>(*f.dim) == t.dim()) &&
               (!f.requires_grad || *f.requires_grad == t.requiresGrad()) &&
               (!f.strides || DimVector(*f.strides) == DimVector(t.strides()));
  for (int64_t d = 0; right && f.sizes && d < t.dim(); ++d) right = fits((*f.sizes)[d], t.size(d));
  return right ? "" : fmt::format("{} is not {}", typeOfTensor(t)->str(), type.str());
}

bool TypeChecker::fits(const Size& s, int64_t number) {
  if (!s) return true;
  if (*s >= 0) return *s == number;
  auto [it, added] = numbers_.emplace(*s, number);
  if (!added) return it->second == number;
  std::optional<int64_t> computed = sizes_.evaluate(s, [&](int64_t symbol) {
    auto known = numbers_.find(symbol);
    return known == numbers_.end() ? std::nullopt : std::optional<int64_t>(known->second);
  });
  return !computed || *computed == number;
}

std::vector<std::string> operatorsWithRules() {
  std::vector<std::string> names;
  forEachOperator([&](const Operator& op) {
    bool plain = !op.has(kSideEffects) && op.form() == Operator::Form::Base;
    if (plain && hasRule(op)) names.push_back(fullName(op));
  });
  return names;
}

std::vector<std::string> operatorsWithoutRules() {
  std::vector<std::string> names;
  forEachOperator([&](const Operator& op) {
    bool written = !op.schema().returns().empty() && op.schema().returns()[0].alias &&
                   op.schema().returns()[0].alias->is_write;
    if (op.form() == Operator::Form::Base && givesTensors(op) && !hasRule(op) && !written) {
      names.push_back(fullName(op));
    }
  });
  return names;
}

std::vector<std::string> plainOperators() {
  std::vector<std::string> names;
  forEachOperator([&](const Operator& op) {
    if (!op.has(kSideEffects) && op.form() == Operator::Form::Base) names.push_back(fullName(op));
  });
  return names;
}

namespace {

// The failures of f(call), one random call for each seed.
template <class F>
std::vector<std::string> checkCalls(const std::string& name, uint64_t first, uint64_t count, F f) {
  size_t dot = name.find('.');
  const Operator* op =
      OperatorRegistry::instance().find(Symbol::fromQualString(name.substr(0, dot)),
                                        dot == std::string::npos ? "" : name.substr(dot + 1));
  WICK_CHECK(op != nullptr, "no operator {}", name);
  std::vector<std::string> failures;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::string failure;
    try {
      OneCall call(*op, seed * 7919 + std::hash<std::string>()(name));
      failure = f(call);
    } catch (const Error& e) {
      failure = fmt::format("{}: {}", name, e.what());
    }
    if (!failure.empty()) failures.push_back(fmt::format("seed {}: {}", seed, failure));
  }
  return failures;
}

}  // namespace

std::vector<std::string> checkOperatorTypes(const std::string& name, uint64_t first, uint64_t count,
                                            std::map<std::string, TypeCheckCounts>& counts) {
  TypeCheckCounts& counted = counts[name];
  return checkCalls(name, first, count, [&](OneCall& call) { return call.run(counted); });
}

std::vector<std::string> checkOperatorWrites(const std::string& name, uint64_t first,
                                             uint64_t count, uint64_t& calls) {
  return checkCalls(name, first, count, [&](OneCall& call) {
    try {
      return call.runForWrites(calls);
    } catch (const Error&) {
      return std::string();  // an argument of a type that has no random values
    }
  });
}

}  // namespace wick
