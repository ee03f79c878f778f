#include "core/tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/allocator.h"
#include "core/convert.h"
#include "core/dtype_dispatch.h"
#include "tests/error_text.h"

namespace wick::tensor_test {
namespace {

using testing_errors::errorOf;

Tensor arange(IntSpan sizes) {
  Tensor t = Tensor::empty(sizes, DType::Float);
  std::iota(t.data<float>(), t.data<float>() + t.numel(), 0.0f);
  return t;
}

// The element at a row-major position, whatever the strides are.
float at(const Tensor& t, int64_t position) {
  int64_t offset = 0;
  for (int64_t d = t.dim() - 1; d >= 0; --d) {
    offset += position % t.sizes()[d] * t.strides()[d];
    position /= t.sizes()[d];
  }
  return t.data<float>()[offset];
}

std::vector<int64_t> ints(IntSpan s) {
  return {s.begin(), s.end()};
}
using Ints = std::vector<int64_t>;

TEST(Storage, AlignedTrackedAndReused) {
  size_t before = allocatedBytes();
  void* first = nullptr;
  {
    Ref<Storage> s = Storage::allocate(1 << 20);
    first = s->data();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
    EXPECT_EQ(allocatedBytes(), before + (1 << 20));
    EXPECT_GE(peakAllocatedBytes(), before + (1 << 20));
  }
  EXPECT_EQ(allocatedBytes(), before);
  EXPECT_EQ(Storage::allocate((1 << 20) - 100)->data(), first);
}

// Fresh memory of the system is zero; what comes back holds what was written.
TEST(Storage, LargeBlocksComeBackUpToThePeak) {
  constexpr size_t kBytes = size_t{100} << 20;
  releaseKeptMemory();  // which could serve one of the two
  auto last = [](const Ref<Storage>& s) { return static_cast<char*>(s->data()) + kBytes - 1; };
  {
    Ref<Storage> a = Storage::allocate(kBytes);
    Ref<Storage> b = Storage::allocate(kBytes);
    *last(a) = 1;
    *last(b) = 2;
  }
  Ref<Storage> a = Storage::allocate(kBytes);
  Ref<Storage> b = Storage::allocate(kBytes);
  EXPECT_EQ(*last(a) + *last(b), 3);
}

TEST(Storage, EverySizeClassHoldsItsRequest) {
  for (size_t bytes = 65000; bytes < (size_t{40} << 20); bytes += bytes / 7 + 1) {
    Ref<Storage> s = Storage::allocate(bytes);
    static_cast<char*>(s->data())[0] = 1;
    static_cast<char*>(s->data())[bytes - 1] = 1;
  }
}

TEST(Storage, RefusesWhatCannotBe) {
  EXPECT_THROW(Storage::allocate(size_t{1} << 60), RuntimeError);
  EXPECT_THROW(Tensor::empty({int64_t{1} << 40, int64_t{1} << 40}, DType::Float), RuntimeError);
  EXPECT_THROW(Tensor::empty({int64_t{1} << 62, 2}, DType::Float), RuntimeError);
  setAllocationLimit(countedBytes() + 1000);
  EXPECT_THROW(Tensor::empty({1000}, DType::Float), RuntimeError);
  EXPECT_NO_THROW(Tensor::empty({100}, DType::Float));
  setAllocationLimit(0);
}

TEST(Storage, ResizeKeepsContents) {
  Tensor t = arange({4});
  t.storage()->resize(4096);
  EXPECT_EQ(t.data<float>()[3], 3.0f);
  float borrowed[2] = {5, 6};
  Tensor b = Tensor::fromStorage(Storage::borrow(borrowed, sizeof borrowed, nullptr), DType::Float,
                                 DimVector{2}, DimVector{1}, 0);
  b.storage()->resize(64);
  EXPECT_EQ(b.data<float>()[1], 6.0f);
}

TEST(Tensor, FromStorageChecksExtent) {
  Ref<Storage> s = Storage::allocate(24);
  auto make = [&](DimVector sizes, DimVector strides, int64_t offset) {
    return Tensor::fromStorage(s, DType::Float, sizes, strides, offset);
  };
  EXPECT_NO_THROW(make({2, 3}, {3, 1}, 0));
  EXPECT_THROW(make({2, 3}, {3, 1}, 1), RuntimeError);
  EXPECT_NO_THROW(make({0, 3}, {3, 1}, 0));
  EXPECT_THROW(make({2}, {INT64_MAX}, 0), RuntimeError);
  EXPECT_THROW(make({3}, {INT64_MAX / 2}, 5), RuntimeError);
  EXPECT_THROW(make({2}, {-1}, 1), RuntimeError);
  EXPECT_THROW(make({2}, {1}, -1), RuntimeError);
  EXPECT_THROW(make({2, 1}, {1}, 0), RuntimeError);
}

TEST(Tensor, FormatsAndSuggestions) {
  Tensor t = Tensor::empty({2, 3, 4, 5}, DType::Float, {}, MemoryFormat::ChannelsLast);
  EXPECT_EQ(ints(t.strides()), (Ints{60, 1, 15, 3}));
  EXPECT_FALSE(t.isContiguous());
  EXPECT_TRUE(t.isContiguous(MemoryFormat::ChannelsLast));
  EXPECT_TRUE(t.isNonOverlappingAndDense());
  EXPECT_EQ(t.suggestMemoryFormat(), MemoryFormat::ChannelsLast);
  EXPECT_EQ(arange({2, 3, 4, 5}).suggestMemoryFormat(), MemoryFormat::Contiguous);
  EXPECT_EQ(arange({2, 1, 4, 4}).suggestMemoryFormat(), MemoryFormat::Contiguous);
  Tensor v = Tensor::empty({2, 3, 4, 5, 6}, DType::Float, {}, MemoryFormat::ChannelsLast3d);
  EXPECT_EQ(v.suggestMemoryFormat(), MemoryFormat::ChannelsLast3d);
  EXPECT_THROW(Tensor::empty({2, 3}, DType::Float, {}, MemoryFormat::ChannelsLast), RuntimeError);
}

// Strides of dimensions of one element and of empty tensors are seen by programs alone, and kept as by PyTorch.
TEST(Tensor, CopiesKeepStridesThatReachNothing) {
  const Tensor column = arange({4, 1}).transpose(0, 1);
  ASSERT_TRUE(column.isContiguous());
  EXPECT_EQ(ints(column.clone().strides()), (Ints{1, 1}));
  EXPECT_EQ(ints(column.to(DType::Double).strides()), (Ints{1, 1}));
  EXPECT_EQ(ints(Tensor::emptyLike(column, DType::Byte).strides()), (Ints{1, 1}));
  EXPECT_EQ(ints(column.clone(MemoryFormat::Contiguous).strides()), (Ints{4, 1}));
  EXPECT_EQ(ints(arange({0, 3}).transpose(0, 1).clone().strides()), (Ints{1, 3}));
  const Tensor odd = arange({1, 2}).asStrided({1, 2}, {0, 1}, 0);
  EXPECT_EQ(ints(odd.clone().strides()), (Ints{0, 1}));
}

TEST(Tensor, CloneAndToPreserveDenseStrides) {
  Tensor t = arange({2, 3, 4}).permute(DimVector{2, 0, 1});
  EXPECT_EQ(ints(t.clone().strides()), ints(t.strides()));
  EXPECT_EQ(ints(t.to(DType::Double).strides()), ints(t.strides()));
  EXPECT_TRUE(t.contiguous().isContiguous());
  // A gap is squeezed out, the order of dimensions stays.
  Tensor gap = arange({4, 6}).slice(1, 0, 3).transpose(0, 1);
  EXPECT_EQ(ints(gap.clone().strides()), (Ints{1, 3}));
}

TEST(Tensor, SelectSliceAndErrors) {
  Tensor t = arange({3, 4});
  EXPECT_EQ(at(t.select(0, -1), 1), 9.0f);
  EXPECT_EQ(at(t.slice(1, 1, 100, 2), 3), 7.0f);
  EXPECT_EQ(ints(t.slice(0, -2, 1000).sizes()), (Ints{2, 4}));
  EXPECT_EQ(ints(t.slice(0, 2, 1).sizes()), (Ints{0, 4}));
  EXPECT_EQ(ints(t.slice(0, 0, INT64_MAX, INT64_MAX).sizes()), (Ints{1, 4}));
  EXPECT_EQ(errorOf([&] { t.select(0, 3); }),
            "select(): index 3 out of range for tensor of size [3, 4] at dimension 0");
  EXPECT_EQ(errorOf([&] { t.slice(0, 0, 1, 0); }), "slice step must be positive");
  EXPECT_EQ(errorOf([&] { t.select(2, 0); }),
            "Dimension out of range (expected to be in range of [-2, 1], but got 2)");
}

TEST(Tensor, ExpandSqueezeUnsqueeze) {
  Tensor t = arange({3, 1});
  EXPECT_EQ(ints(t.expand(DimVector{2, -1, 4}).strides()), (Ints{0, 1, 0}));
  EXPECT_EQ(ints(t.unsqueeze(-1).sizes()), (Ints{3, 1, 1}));
  EXPECT_EQ(ints(t.squeeze(1).sizes()), (Ints{3}));
  EXPECT_EQ(ints(t.squeeze(0).sizes()), (Ints{3, 1}));
  EXPECT_EQ(errorOf([&] {
              t.expand(DimVector{4, 4});
            }),
            "The expanded size of the tensor (4) must match the existing size (3) at non-singleton "
            "dimension 0.  Target sizes: [4, 4].  Tensor sizes: [3, 1]");
  EXPECT_THROW(t.expand(DimVector{-1, 3, 1}), RuntimeError);
  EXPECT_THROW(t.expand(DimVector{int64_t{1} << 62, 3, 4}), RuntimeError);
}

TEST(Tensor, Views) {
  Tensor t = arange({4, 6});
  EXPECT_EQ(ints(t.view(DimVector{2, -1, 3}).strides()), (Ints{12, 3, 1}));
  Tensor columns = t.transpose(0, 1);
  EXPECT_FALSE(columns.tryView(DimVector{24}).has_value());
  EXPECT_EQ(ints(columns.view(DimVector{2, 3, 4}).strides()), (Ints{3, 1, 6}));
  EXPECT_EQ(at(columns.reshape(DimVector{24}), 1), 6.0f);
  Tensor rows = t.slice(1, 0, 2);
  EXPECT_EQ(ints(rows.view(DimVector{2, 2, 1, 2}).strides()), (Ints{12, 6, 2, 1}));
  EXPECT_FALSE(rows.tryView(DimVector{8}).has_value());
  EXPECT_EQ(errorOf([&] {
              t.view(DimVector{5, -1});
            }),
            "shape '[5, -1]' is invalid for input of size 24");
  EXPECT_EQ(errorOf([&] { t.view(DimVector{-1, -1}); }), "only one dimension can be inferred");
  EXPECT_THROW(Tensor::empty({0, 2}, DType::Float).view(DimVector{0, -1}), RuntimeError);
  EXPECT_EQ(ints(Tensor::empty({0, 2}, DType::Float).view(DimVector{2, -1}).sizes()), (Ints{2, 0}));
  EXPECT_EQ(ints(Tensor::scalar(1.0f).view(DimVector{1, 1}).sizes()), (Ints{1, 1}));
}

TEST(Tensor, ItemConverts) {
  EXPECT_EQ(Tensor::scalar<int64_t>(-3).item<double>(), -3.0);
  EXPECT_EQ(Tensor::scalar(std::complex<double>(2, 5)).item<int32_t>(), 2);
  EXPECT_TRUE(Tensor::scalar(std::nan("")).item<bool>());
  EXPECT_EQ(errorOf([] { arange({2}).item<float>(); }),
            "a Tensor with 2 elements cannot be converted to Scalar");
}

TEST(Convert, EdgesAreDefined) {
  double nan = std::nan("");
  EXPECT_EQ(convert<int64_t>(nan), INT64_MIN);
  EXPECT_EQ(convert<int32_t>(1e10), INT32_MIN);
  EXPECT_EQ(convert<int8_t>(300.7f), 44);
  EXPECT_EQ(convert<int16_t>(8589934599.0), 0);
  EXPECT_EQ(convert<uint8_t>(8589934599.0), 7);
  EXPECT_EQ(convert<uint8_t>(-3.7), 253);
  EXPECT_EQ(static_cast<float>(convert<Half>(1e6)), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(convert<bool>(0.25f));
}

TEST(Tensor, ResizeGrowsAndKeeps) {
  Tensor t = arange({2, 3}).transpose(0, 1);
  t.resize({4, 2});
  EXPECT_EQ(ints(t.sizes()), (Ints{4, 2}));
  EXPECT_TRUE(t.isContiguous());
  EXPECT_EQ(at(t, 5), 5.0f);
  EXPECT_GE(t.storage()->bytes(), 32u);
  EXPECT_THROW(t.resize({-1}), RuntimeError);
}

TEST(Copy, EveryPairOfDTypes) {
#define WICK_DTYPE(type, name, text, number) DType::name,
  const DType kAll[] = {WICK_FORALL_DTYPES(WICK_DTYPE)};
#undef WICK_DTYPE
  Tensor values = Tensor::fromData<float>((const float[]){0, 1, 0, 3, 100}, DimVector{5});
  for (DType from : kAll) {
    Tensor src = values.to(from);
    for (DType to : kAll) {
      Tensor dst = src.to(to);
      for (int64_t i = 0; i < 5; ++i) {
        double expected = from == DType::Bool || to == DType::Bool ? values.data<float>()[i] != 0
                                                                   : values.data<float>()[i];
        EXPECT_EQ(dst.select(0, i).item<double>(), expected)
            << toString(from) << " to " << toString(to);
      }
    }
  }
}

// Every layout of source and destination gives what elementwise assignment gives.
TEST(Copy, AnyStrides) {
  const DimVector kOrders[] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 3, 1}, {1, 3, 0, 2}};
  for (DimVector sizes :
       {DimVector{2, 3, 4, 5}, DimVector{3, 40, 37, 33}, DimVector{1, 50, 1, 70}}) {
    for (const DimVector& a : kOrders) {
      for (const DimVector& b : kOrders) {
        DimVector inverse_a(4), inverse_b(4), sizes_a(4), sizes_b(4);
        for (size_t i = 0; i < 4; ++i) {
          inverse_a[a[i]] = inverse_b[b[i]] = static_cast<int64_t>(i);
          inverse_b[b[i]] = static_cast<int64_t>(i);
          sizes_a[i] = sizes[a[i]];
          sizes_b[i] = sizes[b[i]];
        }
        Tensor src = arange(sizes_a).permute(inverse_a);
        Tensor dst = Tensor::full(sizes_b, -1, DType::Float).permute(inverse_b);
        Tensor wide = Tensor::full(sizes_b, -1, DType::Double).permute(inverse_b);
        dst.copyFrom(src);
        wide.copyFrom(src);
        Tensor back = wide.to(DType::Float);
        for (int64_t i = 0; i < src.numel(); ++i) {
          ASSERT_EQ(at(dst, i), at(src, i));
          ASSERT_EQ(at(back, i), at(src, i));
        }
      }
    }
  }
}

TEST(Copy, BroadcastGapsAndEmpty) {
  Tensor dst = Tensor::full({4, 6}, 0, DType::Float);
  dst.slice(1, 0, 6, 2).copyFrom(arange({4, 1}));
  EXPECT_EQ(at(dst, 6 + 2), 1.0f);
  EXPECT_EQ(at(dst, 6 + 3), 0.0f);
  dst.slice(0, 4, 4).copyFrom(arange({6}));
  EXPECT_THROW(dst.copyFrom(arange({5})), RuntimeError);
  EXPECT_THROW(dst.select(0, 0).expand(DimVector{3, 6}).copyFrom(arange({3, 6})), RuntimeError);
  Tensor big = Tensor::full({300, 400}, 2.5, DType::Half);
  EXPECT_EQ(big.to(DType::Float).data<float>()[119999], 2.5f);
}

TEST(Copy, OverlapReadsBeforeItWrites) {
  Tensor t = arange({6});
  t.slice(0, 1, 6).copyFrom(t.slice(0, 0, 5));
  for (int64_t i = 1; i < 6; ++i) EXPECT_EQ(at(t, i), static_cast<float>(i - 1));
  Tensor square = arange({50, 50});
  square.copyFrom(square.transpose(0, 1));
  EXPECT_EQ(at(square, 1), 50.0f);
  EXPECT_EQ(at(square, 50), 1.0f);
}

TEST(Copy, ReadOnlyMemoryIsRefused) {
  float data[2] = {1, 2};
  Tensor t = Tensor::fromStorage(Storage::borrow(data, sizeof data, nullptr, {}, false),
                                 DType::Float, DimVector{2}, DimVector{1}, 0);
  EXPECT_THROW(t.fill(0), RuntimeError);
}

TEST(Storage, DevicesThatTheEngineWasBuiltWithoutAreRefused) {
  const Device cuda{DeviceType::CUDA, 1};
  EXPECT_THROW(Tensor::empty({2, 3}, DType::Float, cuda), RuntimeError);
  EXPECT_THROW(Tensor::zeros({0}, DType::Float, cuda), RuntimeError);
  EXPECT_THROW(Tensor::emptyStrided({2}, {1}, DType::Float, cuda), RuntimeError);
  float data[2] = {1, 2};
  EXPECT_EQ(errorOf([&] { Storage::borrow(data, sizeof data, nullptr, cuda); }),
            "device cuda: this build of the engine has no support for it");
}

TEST(Storage, MetaHasNoMemory) {
  const Device meta{DeviceType::Meta, -1};
  const Tensor t = Tensor::zeros({2, 3}, DType::Float, meta);
  EXPECT_EQ(t.storage()->bytes(), 24);
  EXPECT_EQ(t.storage()->data(), nullptr);
  EXPECT_EQ(t.transpose(0, 1).contiguous().device().str(), "meta");
  EXPECT_EQ(t.to(DType::Half).describe(), "float16[2, 3] on meta");
  t.fill(1);
  EXPECT_EQ(errorOf([&] {
              Tensor::zeros({2, 3}, DType::Float).copyFrom(t);
            }),
            "Cannot copy out of meta tensor; no data!");
}

// As in PyTorch: the devices differ, the tensors do not.
TEST(Storage, ThereIsOneCpu) {
  EXPECT_FALSE(Device::parse("cpu") == Device::parse("cpu:0"));
  EXPECT_FALSE(Device::parse("cuda") == Device::parse("cuda:0"));
  EXPECT_EQ(Tensor::zeros({1}, DType::Float, Device::parse("cpu:0")).device().str(), "cpu");
  float data[1] = {1};
  EXPECT_EQ(Storage::borrow(data, 4, nullptr, Device::parse("cpu:1"))->device().str(), "cpu");
}

TEST(Shapes, BroadcastAndErrors) {
  EXPECT_EQ(ints(broadcastShapes(DimVector{3, 1}, DimVector{2, 1, 4})), (Ints{2, 3, 4}));
  EXPECT_EQ(ints(broadcastShapes(DimVector{0}, DimVector{1})), (Ints{0}));
  EXPECT_EQ(errorOf([] {
              broadcastShapes(DimVector{2, 3}, DimVector{4});
            }),
            "The size of tensor a (3) must match the size of tensor b (4) at non-singleton "
            "dimension 1");
}

// Rows are converted by eights, single numbers one by one.
template <class T>
void expectRowsConvertAsNumbers(DType dtype) {
  Tensor all = Tensor::empty({65536}, dtype);
  for (int64_t i = 0; i < 65536; ++i) all.data<T>()[i].bits = static_cast<uint16_t>(i);
  const Tensor wide = all.to(DType::Float);
  for (int64_t i = 0; i < 65536; ++i) {
    const float number = all.data<T>()[i];
    ASSERT_EQ(std::bit_cast<uint32_t>(wide.data<float>()[i]), std::bit_cast<uint32_t>(number)) << i;
  }
  constexpr int64_t kCount = 100'003;
  Tensor floats = Tensor::empty({kCount}, DType::Float);
  uint32_t bits = 1;
  for (int64_t i = 0; i < kCount; ++i) {
    bits = bits * 1664525 + 1013904223;
    floats.data<float>()[i] = std::bit_cast<float>(bits);
  }
  const Tensor narrow = floats.to(dtype);
  for (int64_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(narrow.data<T>()[i].bits, T(floats.data<float>()[i]).bits) << i;
  }
}
TEST(TensorCopy, RowsOfSixteenBitFloatsConvertAsNumbersDo) {
  expectRowsConvertAsNumbers<Half>(DType::Half);
  expectRowsConvertAsNumbers<BFloat16>(DType::BFloat16);
}

}  // namespace
TEST(StorageTest, DerivedDataLivesWithTheStorage) {
  struct Derived : RefCounted {
    explicit Derived(int* alive) : alive(alive) { ++*alive; }
    ~Derived() override { --*alive; }
    int* alive;
  };
  int alive = 0;
  {
    Ref<Storage> storage = Storage::allocate(64);
    EXPECT_EQ(storage->derived(), nullptr);
    Ref<RefCounted> first = makeRef<Derived>(&alive);
    RefCounted* attached = storage->attachDerived(first);
    EXPECT_EQ(attached, first.get());
    EXPECT_EQ(storage->attachDerived(makeRef<Derived>(&alive)), attached);
    EXPECT_EQ(storage->derived(), attached);
    first = nullptr;
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Tensor, AnUndefinedOneRefusesEveryQuestion) {
  const Tensor none;
  EXPECT_FALSE(none.defined());
  EXPECT_TRUE(none.isSame(Tensor()));
  EXPECT_EQ(none.impl(), nullptr);
  EXPECT_EQ(none.describe(), "undefined tensor");
  const Tensor some = Tensor::zeros({2}, DType::Float);
  const auto refuses = [](auto question) { EXPECT_THROW(question(), UsageError); };
  refuses([&] { none.numel(); });
  refuses([&] { none.dim(); });
  refuses([&] { none.sizes(); });
  refuses([&] { none.strides(); });
  refuses([&] { none.size(0); });
  refuses([&] { none.stride(0); });
  refuses([&] { none.offset(); });
  refuses([&] { none.dtype(); });
  refuses([&] { none.itemSize(); });
  refuses([&] { none.device(); });
  refuses([&] { none.storage(); });
  refuses([&] { none.requiresGrad(); });
  refuses([&] { none.setRequiresGrad(true); });
  refuses([&] { none.isContiguous(); });
  refuses([&] { none.isContiguous(MemoryFormat::ChannelsLast); });
  refuses([&] { none.isNonOverlappingAndDense(); });
  refuses([&] { none.suggestMemoryFormat(); });
  refuses([&] { none.rawData(); });
  refuses([&] { none.data<float>(); });
  refuses([&] { none.item<float>(); });
  refuses([&] { none.sharesStorage(some); });
  refuses([&] { some.sharesStorage(none); });
  refuses([&] { none.asStrided({1}, {1}, 0); });
  refuses([&] { none.transpose(0, 1); });
  refuses([&] { none.permute({0}); });
  refuses([&] { none.select(0, 0); });
  refuses([&] { none.slice(0, 0, 1); });
  refuses([&] { none.narrow(0, 0, 1); });
  refuses([&] { none.unsqueeze(0); });
  refuses([&] { none.squeeze(0); });
  refuses([&] { none.expand({2}); });
  refuses([&] { none.tryView({2}); });
  refuses([&] { none.view({2}); });
  refuses([&] { none.detach(); });
  refuses([&] { none.reshape({2}); });
  refuses([&] { none.flatten(); });
  refuses([&] { none.contiguous(); });
  refuses([&] { none.clone(); });
  refuses([&] { none.to(DType::Float); });
  refuses([&] { none.copyFrom(some); });
  refuses([&] { some.copyFrom(none); });
  refuses([&] { none.fill(1); });
  refuses([&] { none.resize({2}); });
  refuses([&] { Tensor::emptyLike(none, DType::Float); });
  Tensor moved = some, taken = std::move(moved);
  refuses([&] { moved.numel(); });
}

TEST(Tensor, TheCallersMistakesAreNotBugsOfOurs) {
  try {
    Tensor::zeros({2}, DType::Float).data<int64_t>();
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_NE(std::string(e.what()).find("float32"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("int64"), std::string::npos) << e.what();
  }
  EXPECT_THROW(Tensor::fromData<float>(nullptr, {2}), UsageError);
  EXPECT_EQ(Tensor::fromData<float>(nullptr, {0}).numel(), 0);
  EXPECT_THROW(Storage::borrow(nullptr, 4, nullptr), UsageError);
  EXPECT_THROW(Tensor::fromStorage(nullptr, DType::Float, {1}, {1}, 0), UsageError);
  EXPECT_THROW(Tensor::empty({-1}, DType::Float), RuntimeError);
  EXPECT_THROW(Tensor::empty({INT64_MAX, 2}, DType::Float), RuntimeError);
}

}  // namespace wick::tensor_test
