#include "ir/operator.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "core/device_backend.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "ir/graph.h"

namespace wick {

namespace {

// "aten::add" of "aten::add.Tensor(Tensor self, …".
std::string_view recordName(std::string_view schema) {
  return schema.substr(0, schema.find_first_of(".("));
}

// The alias set of a derived form's written argument; lower-case letters are the schemas' own.
std::shared_ptr<const AliasInfo> writtenAlias() {
  auto alias = std::make_shared<AliasInfo>();
  alias->is_write = true;
  alias->before = alias->after = {"a"};
  return alias;
}

// name_(Tensor(a!) self, …) -> Tensor(a!)
FunctionSchema inplaceSchema(const FunctionSchema& base) {
  std::vector<Argument> arguments = base.arguments();
  arguments.at(0).alias = writtenAlias();
  std::vector<Argument> returns = base.returns();
  returns.at(0).alias = arguments[0].alias;
  return FunctionSchema(base.name() + "_", base.overload(), std::move(arguments),
                        std::move(returns));
}

// name.overload_out(…, *, Tensor(a!) out) -> Tensor(a!). The overload of an unnamed base is "out",
// and that of a base named Tensor too unless it is taken.
FunctionSchema outSchema(const FunctionSchema& base, bool out_taken) {
  std::vector<Argument> arguments = base.arguments();
  Argument out;
  out.name = "out";
  out.type = types::Tensor();
  out.kwarg_only = true;
  out.alias = writtenAlias();
  std::vector<Argument> returns = base.returns();
  returns.at(0).alias = out.alias;
  arguments.push_back(std::move(out));
  std::string overload = base.overload().empty()                     ? "out"
                         : base.overload() == "Tensor" && !out_taken ? "out"
                                                                     : base.overload() + "_out";
  return FunctionSchema(base.name(), std::move(overload), std::move(arguments), std::move(returns));
}

}  // namespace

namespace {

std::atomic<Operator::Recorder> set_recorder{nullptr};

// Tensor, Tensor?, and lists of them.
bool holdsTensors(const TypePtr& type) {
  if (const auto* optional = type->as<OptionalType>()) return holdsTensors(optional->element());
  if (const auto* list = type->as<ListType>()) return holdsTensors(list->element());
  return type->kind() == TypeKind::Tensor;
}

}  // namespace

void Operator::setRecorder(Recorder recorder) {
  set_recorder.store(recorder, std::memory_order_release);
}

bool Operator::listHasHistory(const IValue& list) {
  const std::vector<IValue>& elements = list.elements();
  // The elements of a list are of one kind.
  if (elements.empty() || !(elements[0].isTensor() || elements[0].isNone())) return false;
  return std::ranges::any_of(elements,
                             [](const IValue& e) { return e.isTensor() && hasHistory(e); });
}

void Operator::record(IValue* args, size_t num_args, IValue* results, size_t num_results,
                      uint64_t borrowed) const {
  if (const Recorder found = set_recorder.load(std::memory_order_acquire)) {
    found(*this, args, num_args, results, num_results, borrowed);
  } else {
    callKernel(args, num_args, results, num_results, borrowed);
  }
}

Operator::Operator(FunctionSchema schema, Symbol symbol, const OperatorRecord& record, Form form)
    : schema_(std::move(schema)), symbol_(symbol), record_(record), form_(form) {
  for (size_t i = 0; i < std::min<size_t>(schema_.arguments().size(), 64); ++i) {
    const auto& alias = schema_.arguments()[i].alias;
    if (alias && (alias->is_write || (!alias->contained.empty() && alias->contained[0].is_write))) {
      written_ |= uint64_t{1} << i;
    }
  }
  if (record_.writes) readUnannotatedWrites();
  findKernelsOfKinds();
  for (size_t i = 0; i < std::min<size_t>(schema_.arguments().size(), 64); ++i) {
    if (holdsTensors(schema_.arguments()[i].type)) tensors_ |= uint64_t{1} << i;
  }
  for (const Argument& result : schema_.returns()) {
    makes_views_ |= !has(kNotDifferentiable) && tensors_ != 0 && result.alias && written_ == 0 &&
                    holdsTensors(result.type);
  }
}

void Operator::readUnannotatedWrites() {
  bool condition = false;
  std::string_view rest = record_.writes;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (word == "if") {
      condition = true;
      continue;
    }
    const std::optional<size_t> index = schema_.argumentIndex(word);
    WICK_ASSERT(index && *index < 64, "{} has no argument {}", schema_.str(), word);
    if (condition) {
      write_condition_ = index;
    } else {
      unannotated_ |= uint64_t{1} << *index;
    }
  }
}

uint64_t Operator::unannotatedInCall(const Node& node) const {
  const std::vector<Value*>& inputs = node.inputs();
  if (write_condition_ && *write_condition_ < inputs.size()) {
    const std::optional<IValue> condition = constantOf(inputs[*write_condition_]);
    if (condition && condition->isBool() && !condition->toBool()) return 0;
  }
  uint64_t written = unannotated_;
  for (size_t i = 0; i < std::min<size_t>(inputs.size(), 64); ++i) {
    if ((written >> i & 1) == 0) continue;
    const std::optional<IValue> constant = constantOf(inputs[i]);
    if (constant && constant->isNone()) written &= ~(uint64_t{1} << i);
  }
  return written;
}

// Before the kernel runs, because it may move out of its arguments.
void Operator::bumpWritten(const IValue* args, size_t num_args) const {
  auto bump = [](const IValue& v) {
    if (!v.isTensor()) return;
    static_cast<TensorImpl*>(v.rawObject())->storage->bumpVersion();
  };
  for (uint64_t rest = written_; rest != 0; rest &= rest - 1) {
    size_t i = static_cast<size_t>(std::countr_zero(rest));
    if (i >= num_args) break;
    bump(args[i]);
    // t[](a!) is a list that is written, Tensor(a!)[] one of tensors that are.
    const auto& contained = schema_.arguments()[i].alias->contained;
    if (args[i].isList() && !contained.empty() && contained[0].is_write) {
      for (const IValue& e : args[i].elements()) bump(e);
    }
  }
}

void Operator::callKernel(IValue* args, size_t num_args, IValue* results, size_t num_results,
                          uint64_t borrowed) const {
  if (written_ != 0) bumpWritten(args, num_args);
  if (kindsInUse()) [[unlikely]] {
    if (const TensorKind kind = kindOfArguments(args, num_args); kind != TensorKind::Dense) {
      callForKind(kind, args, num_args, results, num_results, borrowed);
      return;
    }
    if (const DeviceType type = deviceOfArguments(*this, args, num_args); type != DeviceType::CPU) {
      callOnDevice(type, {args, num_args, results, num_results, this, borrowed});
      return;
    }
    if (tensors_ != 0 && !defaultDevice().isCpu()) {
      const OnCpuScope here;
      if (form_ != Form::Base) return callDerived(args, num_args, results, num_results, borrowed);
      CallFrame frame{args, num_args, results, num_results, this, borrowed};
      return record_.kernel(frame);
    }
  }
  if (form_ != Form::Base) {
    callDerived(args, num_args, results, num_results, borrowed);
    return;
  }
  CallFrame frame{args, num_args, results, num_results, this, borrowed};
  record_.kernel(frame);
}

namespace {

// Which dtypes an out= tensor may have beside the result's: those that it can be cast to, as with
// PyTorch's iterators, those of them that are not complex, no other, all that there are, or uint8,
// where true and false are meant. By names of overloads, because nothing else of an operator tells.
enum class OutputRule { Castable, Real, Same, Any, Boolean };

constexpr std::string_view kSameDType =
    " _linalg_det.result _linalg_eigh.eigenvalues _linalg_slogdet.sign _linalg_solve_ex.result"
    " _linalg_svd.U _log_softmax.out _softmax.out _upsample_nearest_exact1d.out"
    " _upsample_nearest_exact2d.out _upsample_nearest_exact3d.out abs.out absolute.out"
    " adaptive_avg_pool2d.out adaptive_avg_pool3d.out adaptive_max_pool2d.out"
    " adaptive_max_pool3d.out addbmm.out addcdiv.out addcmul.out addmm.out addmv.out amax.out"
    " amin.out aminmax.out argmax.out argmin.out avg_pool2d.out avg_pool3d.out baddbmm.out"
    " binary_cross_entropy.out bitwise_not.out bmm.out bucketize.Scalar_out bucketize.Tensor_out"
    " ceil.out clamp.out clamp_max.out clamp_min.out clip.out complex.out cross.out cummax.out"
    " cummin.out diag.out dot.out elu.out fix.out float_power.Scalar_out"
    " float_power.Tensor_Scalar_out float_power.Tensor_Tensor_out floor.out frac.out"
    " fractional_max_pool2d.output frexp.Tensor_out gather.out gelu.out hardshrink.out"
    " hardsigmoid.out hardswish.out hardtanh.out heaviside.out histc.out histogram.bin_ct_out"
    " histogram.bins_tensor_out index_add.out index_copy.out index_reduce.out index_select.out"
    " inverse.out isin.Scalar_Tensor_out isin.Tensor_Scalar_out isin.Tensor_Tensor_out"
    " isneginf.out isposinf.out kthvalue.values leaky_relu.out lerp.Tensor_out"
    " linalg_cholesky.out linalg_cholesky_ex.L linalg_cross.out linalg_det.out"
    " linalg_eigh.eigvals linalg_eigvalsh.out linalg_inv.out linalg_inv_ex.inverse"
    " linalg_ldl_factor.out linalg_ldl_factor_ex.out linalg_ldl_solve.out linalg_lu.out"
    " linalg_lu_factor.out linalg_lu_factor_ex.out linalg_lu_solve.out linalg_matrix_norm.out"
    " linalg_matrix_norm.str_ord_out linalg_multi_dot.out linalg_norm.ord_str_out"
    " linalg_norm.out linalg_qr.out linalg_slogdet.out linalg_solve.out linalg_solve_ex.out"
    " linalg_solve_triangular.out linalg_svd.U linalg_svdvals.out linalg_vecdot.out"
    " linalg_vector_norm.out linear.out log_sigmoid.out log_sigmoid_forward.output"
    " log_softmax.int_out logcumsumexp.out lu_solve.out lu_unpack.out masked_select.out"
    " matmul.out max.dim_max max_pool2d_with_indices.out max_pool3d_with_indices.out"
    " max_unpool2d.out max_unpool3d.out median.dim_values min.dim_min mish.out mm.out"
    " mode.values msort.out multi_margin_loss.out multilabel_margin_loss.out"
    " multilabel_margin_loss_forward.output multinomial.out mv.out nan_to_num.out"
    " nanmedian.dim_values nanquantile.out nanquantile.scalar_out narrow_copy.out neg.out"
    " negative.out nll_loss2d_forward.output nll_loss_forward.output nonzero.out ormqr.out"
    " polar.out qr.Q quantile.out quantile.scalar_out reflection_pad1d.out reflection_pad2d.out"
    " reflection_pad3d.out renorm.out replication_pad1d.out replication_pad2d.out"
    " replication_pad3d.out round.decimals_out round.out scatter.reduce_out scatter.src_out"
    " scatter.value_out scatter.value_reduce_out scatter_add.out scatter_reduce.two_out"
    " searchsorted.Scalar_out searchsorted.Tensor_out sgn.out sign.out silu.out slogdet.out"
    " slow_conv3d.out slow_conv_transpose2d.out soft_margin_loss.out softmax.int_out"
    " softplus.out softshrink.out sort.values sort.values_stable square.out take.out"
    " take_along_dim.out tensordot.out thnn_conv2d.out topk.values triangular_solve.X tril.out"
    " triu.out trunc.out upsample_bicubic2d.out upsample_bilinear2d.out upsample_linear1d.out"
    " upsample_nearest1d.out upsample_nearest2d.out upsample_nearest3d.out"
    " upsample_trilinear3d.out vdot.out where.self_out ";

constexpr std::string_view kAnyDType =
    " _adaptive_avg_pool2d.out _adaptive_avg_pool3d.out _cdist_forward.out _convolution.out"
    " _euclidean_dist.out _histogramdd_from_bin_cts.out _histogramdd_from_bin_tensors.out"
    " _fft_c2c.out _fft_c2r.out _fft_r2c.out _pdist_forward.out add.Scalar_out"
    " as_strided_scatter.out bincount.out block_diag.out celu.out clone.out constant_pad_nd.out "
    "convolution.out count_nonzero.dim_IntList_out"
    " count_nonzero.out diag_embed.out diagonal_scatter.out dist.out div.Scalar_out"
    " embedding.out flip.out frobenius_norm.out grid_sampler_2d.out index_fill.int_Scalar_out"
    " index_fill.int_Tensor_out index_put.out linalg_matrix_exp.out masked_fill.Scalar_out"
    " masked_fill.Tensor_out masked_scatter.out median.out mul.Scalar_out nanmedian.out"
    " nuclear_norm.dim_out nuclear_norm.out pixel_shuffle.out pixel_unshuffle.out prelu.out"
    " put.out relu.out repeat.out roll.out rot90.out rsub.Scalar_out rsub.Tensor_out"
    " segment_reduce.out select_scatter.out sub.Scalar_out trace.out ";

constexpr std::string_view kBoolean =
    " all.all_out all.dim_out all.out any.all_out any.dim_out any.out ";

constexpr std::string_view kReal =
    " fft_hfft.out fft_hfft2.out fft_hfftn.out fft_irfft.out fft_irfft2.out fft_irfftn.out"
    " logsumexp.out nanmean.out ";

OutputRule outputRule(const FunctionSchema& schema) {
  constexpr std::string_view kPrefix = "aten::";
  if (!schema.name().starts_with(kPrefix)) return OutputRule::Castable;
  const std::string name = " " + schema.name().substr(kPrefix.size()) + ".";
  // What PyTorch calls Tensor_out may be called out here (outSchema).
  const std::string own = name + schema.overload() + " ", other = name + "Tensor_out ";
  auto is_in = [&](std::string_view list) {
    return list.find(own) != list.npos ||
           (schema.overload() == "out" && list.find(other) != list.npos);
  };
  if (is_in(kSameDType)) return OutputRule::Same;
  if (is_in(kAnyDType)) return OutputRule::Any;
  if (is_in(kReal)) return OutputRule::Real;
  return is_in(kBoolean) ? OutputRule::Boolean : OutputRule::Castable;
}

void checkOutput(const Operator& op, DType result, DType out) {
  if (result == out) return;
  const std::string& name = op.schema().name();
  const OutputRule rule =
      op.form() == Operator::Form::Inplace ? OutputRule::Castable : outputRule(op.schema());
  if (rule == OutputRule::Any || (rule == OutputRule::Boolean && out == DType::Byte)) return;
  WICK_CHECK(rule == OutputRule::Castable || (rule == OutputRule::Real && !isComplex(out)),
             "{}: Expected out tensor to have dtype {}, but got {} instead", name, toString(result),
             toString(out));
  WICK_CHECK(canCast(result, out), "{}: result type {} can't be cast to the desired output type {}",
             name, toString(result), toString(out));
}

// Whether nothing but this dtype comes of the arguments: one has it, and none a wider one.
bool computesIn(DType dtype, std::span<const IValue> args) {
  bool found = false, wider = false;
  auto look = [&](const IValue& v) {
    if (!v.isTensor() || !v.toTensor().defined()) return;
    const DType own = v.toTensor().dtype();
    found |= own == dtype;
    wider |= own != dtype && promoteTypes(own, dtype) != dtype;
  };
  for (const IValue& v : args) {
    look(v);
    if (v.isList()) std::ranges::for_each(v.elements(), look);
  }
  return found && !wider;
}

}  // namespace

void Operator::callDerived(IValue* args, size_t num_args, IValue* results, size_t num_results,
                           uint64_t borrowed) const {
  Tensor destination = args[form_ == Form::Inplace ? 0 : num_args - 1].toTensor();
  WICK_CHECK(destination.defined(), "{}: expected a tensor to write to, got None", schema_.name());
  WICK_CHECK(destination.storage()->writable(), "{}: the destination's memory is read-only",
             schema_.name());
  const size_t num_taken = form_ == Form::Out ? num_args - 1 : num_args;
  // A kernel casts what it writes; where the result's dtype decides, it must be seen first.
  const bool direct = form_ == Form::Inplace ||
                      computesIn(destination.dtype(), {args, num_taken}) ||
                      outputRule(schema_) == OutputRule::Castable;
  CallFrame frame{
      args, num_taken, results, num_results, this, borrowed, direct ? &destination : nullptr};
  record_.kernel(frame);
  finishDerived(*this, destination, results[0]);
}

void finishDerived(const Operator& op, const Tensor& destination, IValue& result) {
  const Tensor given = result.toTensor();
  if (given.isSame(destination)) return;
  if (op.form() == Operator::Form::Inplace) {
    WICK_CHECK(std::ranges::equal(destination.sizes(), given.sizes()),
               "{}: the output of shape {} does not match the broadcast shape {}",
               op.schema().name(), formatInts(destination.sizes()), formatInts(given.sizes()));
  }
  checkOutput(op, given.dtype(), destination.dtype());
  if (!std::ranges::equal(destination.sizes(), given.sizes())) {
    destination.resize(given.sizes());
  }
  destination.copyFrom(given);
  result = IValue(destination);
}

// Names are indexed as tables arrive; schemas are parsed when a name is first asked for.
struct OperatorRegistry::State {
  struct Entry {
    std::vector<std::pair<const OperatorRecord*, Operator::Form>> records;
    std::vector<const Operator*> operators;
    bool parsed = false;
  };
  std::shared_mutex mutex;
  std::map<std::string, Entry, std::less<>> entries;
  std::vector<OperatorAlias> aliases;
  std::deque<Operator> storage;
  std::unordered_map<Symbol, const Entry*> ready;
  const std::vector<const Operator*> none{};

  // Both called with the mutex held exclusively.
  const Entry* parsedEntry(const std::string& name);
  void parse(const std::string& name, Entry& entry);
};

void OperatorRegistry::State::parse(const std::string& name, Entry& entry) {
  entry.parsed = true;
  Symbol symbol = Symbol::fromQualString(name);
  auto rename = [&](FunctionSchema s) {
    return s.name() == name ? s
                            : FunctionSchema(name, s.overload(), s.arguments(), s.returns(),
                                             s.isVararg(), s.isVarret());
  };
  auto hasOverload = [&](std::string_view overload) {
    return std::any_of(entry.operators.begin(), entry.operators.end(),
                       [&](const Operator* o) { return o->schema().overload() == overload; });
  };
  for (auto [record, form] : entry.records) {
    FunctionSchema base = parseSchema(record->schema);
    FunctionSchema schema = form == Operator::Form::Base      ? std::move(base)
                            : form == Operator::Form::Inplace ? inplaceSchema(base)
                                                              : outSchema(base, hasOverload("out"));
    bool taken = hasOverload(schema.overload());
    // A form written out in a table wins over the derived one.
    if (taken && form != Operator::Form::Base) continue;
    WICK_ASSERT(!taken, "the operator {} is registered twice", schema.str());
    storage.emplace_back(rename(std::move(schema)), symbol, *record, form);
    entry.operators.push_back(&storage.back());
  }
}

const OperatorRegistry::State::Entry* OperatorRegistry::State::parsedEntry(
    const std::string& name) {
  auto it = entries.find(name);
  if (it == entries.end()) return nullptr;
  if (!it->second.parsed) parse(name, it->second);
  return &it->second;
}

OperatorRegistry::OperatorRegistry() : state_(std::make_unique<State>()) {}

OperatorRegistry& OperatorRegistry::instance() {
  static OperatorRegistry* registry =
      new OperatorRegistry;  // never destroyed: threads may outlive main
  return *registry;
}

void OperatorRegistry::add(std::span<const OperatorRecord> records,
                           std::span<const OperatorAlias> aliases) {
  std::unique_lock lock(state_->mutex);
  auto index = [&](const std::string& name, const OperatorRecord& r, Operator::Form form) {
    State::Entry& entry = state_->entries[name];
    WICK_ASSERT(!entry.parsed, "{} is registered after its first use", name);
    // Written-out forms come first, so that a derived one is known to be superfluous.
    auto at = form == Operator::Form::Base
                  ? std::find_if(entry.records.begin(), entry.records.end(),
                                 [](const auto& e) { return e.second != Operator::Form::Base; })
                  : entry.records.end();
    entry.records.insert(at, {&r, form});
  };
  for (const OperatorRecord& r : records) {
    std::string name(recordName(r.schema));
    index(name, r, Operator::Form::Base);
    if (r.flags & kInplaceForm) index(name + "_", r, Operator::Form::Inplace);
    if (r.flags & kOutForm) index(name, r, Operator::Form::Out);
  }
  state_->aliases.insert(state_->aliases.end(), aliases.begin(), aliases.end());
}

const std::vector<const Operator*>& OperatorRegistry::overloads(Symbol name) {
  {
    std::shared_lock lock(state_->mutex);
    if (auto it = state_->ready.find(name); it != state_->ready.end()) return it->second->operators;
  }
  std::unique_lock lock(state_->mutex);
  std::string text(name.qualString());
  auto it = state_->entries.find(text);
  if (it == state_->entries.end()) {
    // An alias takes over the overloads of the other name, its in-place form those of name_.
    for (const OperatorAlias& alias : state_->aliases) {
      bool inplace = text == std::string(alias.alias) + "_";
      if (!inplace && text != alias.alias) continue;
      auto target = state_->entries.find(std::string(alias.name) + (inplace ? "_" : ""));
      if (target == state_->entries.end()) continue;
      it = state_->entries.emplace(text, State::Entry{target->second.records, {}, false}).first;
      break;
    }
    if (it == state_->entries.end()) return state_->none;
  }
  const State::Entry* entry = state_->parsedEntry(text);
  state_->ready.emplace(name, entry);
  return entry->operators;
}

const Operator* OperatorRegistry::find(Symbol name, std::string_view overload) {
  for (const Operator* op : overloads(name)) {
    if (op->schema().overload() == overload) return op;
  }
  return nullptr;
}

std::vector<std::string> OperatorRegistry::names() {
  std::shared_lock lock(state_->mutex);
  std::vector<std::string> out;
  for (const auto& [name, entry] : state_->entries) out.push_back(name);
  for (const OperatorAlias& alias : state_->aliases) {
    out.emplace_back(alias.alias);
    if (state_->entries.count(std::string(alias.name) + "_")) out.push_back(out.back() + "_");
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace wick
