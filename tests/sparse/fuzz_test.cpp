// Calls every operator that takes sparse tensors, and those of torchvision, with random arguments:
// wrong sizes, indices that changed after they were checked, huge numbers. Whatever happens is a
// result or an error of the user's, never a crash or an internal error.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "core/error.h"
#include "core/memory_limit.h"
#include "core/sparse_form.h"
#include "ir/kind_kernels.h"
#include "ir/operator.h"

namespace wick::fuzz_test {
namespace {

class Arguments {
 public:
  explicit Arguments(uint64_t seed) : random_(seed) {}

  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  bool once(size_t in) { return below(in) == 0; }

  int64_t integer() {
    constexpr int64_t kHuge[] = {INT64_MAX, INT64_MIN, int64_t{1} << 40, -7, int64_t{1} << 60};
    return once(8) ? kHuge[below(std::size(kHuge))] : static_cast<int64_t>(below(6)) - 2;
  }

  Tensor dense() {
    DimVector sizes;
    for (size_t d = once(3) ? below(5) : 2; d > 0; --d) sizes.push_back(once(9) ? 0 : 2 + below(3));
    constexpr DType kTypes[] = {DType::Float, DType::Double,       DType::Long, DType::Bool,
                                DType::Half,  DType::ComplexFloat, DType::Int};
    Tensor t = Tensor::empty(sizes, DType::Float);
    for (int64_t i = 0; i < t.numel(); ++i) {
      t.data<float>()[i] = once(3) ? static_cast<float>(below(5)) - 2 : 0;
    }
    return t.to(once(3) ? kTypes[below(std::size(kTypes))] : DType::Float);
  }
  Tensor indices(int64_t rows, int64_t count, int64_t below_size) {
    Tensor t = Tensor::empty(DimVector{rows, count}, DType::Long);
    for (int64_t i = 0; i < t.numel(); ++i) {
      t.data<int64_t>()[i] = static_cast<int64_t>(below(static_cast<size_t>(below_size)));
    }
    return t;
  }
  Tensor sparse() {
    Tensor values = dense();
    if (once(3)) {
      static const Operator* const kCompress[] = {
          OperatorRegistry::instance().find(Symbol::aten("to_sparse_csr"), ""),
          OperatorRegistry::instance().find(Symbol::aten("to_sparse_csc"), "")};
      IValue arguments[] = {IValue(values), IValue()}, result;
      try {
        kCompress[below(2)]->call(arguments, 2, &result, 1);
        Tensor t = result.toTensor();
        if (once(10)) spoil(sparseFormOf("", t).compressed);
        if (once(10)) spoil(sparseFormOf("", t).plain);
        return t;
      } catch (const RuntimeError&) {
        values = Tensor::zeros(DimVector{3}, DType::Float);
      }
    }
    if (values.dim() == 0) values = values.reshape(DimVector{1});
    const auto sparse_dim = static_cast<int64_t>(below(3));
    const Tensor at = indices(sparse_dim, values.size(0), 3);
    DimVector sizes(static_cast<size_t>(sparse_dim), 3);
    for (const int64_t s : values.sizes().subspan(1)) sizes.push_back(s);
    const Tensor t = makeSparseCoo(at, values, sizes, once(4));
    if (once(10)) spoil(sparseFormOf("", t).indices);
    return t;
  }
  void spoil(const Tensor& t) {
    if (t.numel() == 0) return;
    const auto at = static_cast<int64_t>(below(static_cast<size_t>(t.numel())));
    if (t.dtype() == DType::Long && t.isContiguous()) t.data<int64_t>()[at] = integer();
  }
  Tensor tensor() { return once(3) ? dense() : sparse(); }

  IValue of(const TypePtr& type) {
    if (const auto* optional = type->as<OptionalType>()) {
      return once(2) ? IValue() : of(optional->element());
    }
    if (const auto* list = type->as<ListType>()) {
      std::vector<IValue> elements;
      for (size_t n = below(4); n > 0; --n) elements.push_back(of(list->element()));
      return IValue(makeList(type, std::move(elements)));
    }
    switch (type->kind()) {
      case TypeKind::Tensor:
        return IValue(tensor());
      case TypeKind::Int:
        return IValue(integer());
      case TypeKind::Float:
        return IValue(once(6) ? std::nan("") : static_cast<double>(integer()));
      case TypeKind::Bool:
        return IValue(once(2));
      case TypeKind::Number:
        return once(2) ? IValue(integer()) : IValue(1.5);
      case TypeKind::String:
        return IValue(std::string(once(2) ? "floor" : "x"));
      case TypeKind::Device:
        return IValue(Device{});
      default:
        return IValue();
    }
  }

 private:
  std::mt19937_64 random_;
};

std::vector<const Operator*> operators() {
  std::vector<const Operator*> found;
  OperatorRegistry& registry = OperatorRegistry::instance();
  for (const std::string& name : registry.names()) {
    const bool own =
        name.find("sparse") != std::string::npos || name.starts_with("torchvision::") ||
        name.find("_indices") != std::string::npos || name.find("coalesce") != std::string::npos;
    for (const Operator* op : registry.overloads(Symbol::fromQualString(name))) {
      std::string full(op->schema().name());
      if (!op->schema().overload().empty()) full += "." + std::string(op->schema().overload());
      const KindKernels* kernels = findKindKernels(full);
      const bool takes = kernels && (*kernels)[static_cast<size_t>(TensorKind::Sparse)];
      if (own || takes) {
        found.push_back(op);
      }
    }
  }
  return found;
}

TEST(SparseFuzz, OnlyResultsAndErrors) {
  setAllocationLimit(size_t{1} << 30);
  const char* const asked = std::getenv("WICK_FUZZ_COUNT");
  const size_t rounds = asked ? std::strtoull(asked, nullptr, 10) : 60;
  const std::vector<const Operator*> all = operators();
  ASSERT_GT(all.size(), 150u);
  size_t done = 0, refused = 0;
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t k = 0; k < all.size(); ++k) {
      const Operator& op = *all[k];
      Arguments arguments(round * 1000003 + k);
      std::vector<IValue> values;
      for (const Argument& a : op.schema().arguments()) values.push_back(arguments.of(a.type));
      std::vector<IValue> results(op.schema().returns().size());
      try {
        op.call(values.data(), values.size(), results.data(), results.size());
        ++done;
        for (const IValue& r : results) {
          if (r.isTensor() && r.toTensor().defined()) r.str();
        }
      } catch (const InternalError& e) {
        ADD_FAILURE() << op.schema().str() << " round " << round << ": " << e.what();
      } catch (const std::exception&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(done, refused / 20);
}

}  // namespace
}  // namespace wick::fuzz_test
