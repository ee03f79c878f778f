// Programs whose operators depend on shapes: each node is run as soon as it is written, so that the
// next can be chosen to fit.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "core/error.h"
#include "ir/parser.h"
#include "tests/codegen/random_programs.h"

namespace wick {

namespace {

class StructureMaker {
 public:
  explicit StructureMaker(Random& random)
      : random_(random), fresh_(random.fork()), extended_(fresh_.oneIn(2)) {}

  Program make() {
    DimVector shape(static_cast<size_t>(1 + random_.below(4)));
    for (int64_t& size : shape) size = random_.oneIn(12) ? 1 : 2 + random_.below(8);
    dtype_ = random_.of({DType::Float, DType::Float, DType::Float, DType::Double, DType::Half,
                         DType::Long, DType::Int});
    const int count = 1 + random_.below(3);
    for (int i = 0; i < count; ++i) {
      Tensor t = Tensor::empty(shape, dtype_);
      if (random_.oneIn(3)) t = randomTensor(random_, shape, dtype_);
      if (t.dim() == 4 && random_.oneIn(3)) t = t.contiguous(MemoryFormat::ChannelsLast);
      tame(t);
      input(t);
    }
    const int nodes = 2 + random_.below(9);
    for (int i = 0; i < nodes; ++i) node();
    // Views alone are no work for a kernel.
    if (random_.below(4) != 0) pointwise(Known(values_.back()));
    std::string outputs = values_.back().name;
    for (size_t i = static_cast<size_t>(count); i + 1 < values_.size(); ++i) {
      if (random_.oneIn(7)) outputs += ", " + values_[i].name;
    }
    program_.text = text_.graph(inputs_, outputs);
    return std::move(program_);
  }

 private:
  struct Known {
    std::string name;
    Tensor tensor;
    // Whether kernels give the same bits; then comparisons may look at them.
    bool exact = true;
  };

  // Numbers whose sums and products stay finite.
  void tame(const Tensor& t) {
    if (t.numel() == 0) return;
    for (int64_t i = 0; i < t.numel(); ++i) {
      int64_t rest = i, offset = 0;
      for (int64_t d = t.dim(); d-- > 0;) {
        offset += rest % t.size(d) * t.stride(d);
        rest /= t.size(d);
      }
      const double value = isFloating(t.dtype()) ? random_.number() * 2 - 1 : random_.below(9) - 4;
      Tensor at = Tensor::full({}, value, t.dtype());
      std::memcpy(static_cast<char*>(t.rawData()) + offset * static_cast<int64_t>(t.itemSize()),
                  at.rawData(), t.itemSize());
    }
  }
  std::string input(const Tensor& t) {
    std::string name = fmt::format("%x{}", program_.arguments.size());
    inputs_ += fmt::format("{}{} : Tensor", inputs_.empty() ? "" : ", ", name);
    program_.arguments.emplace_back(t);
    values_.push_back({name, t});
    return name;
  }
  // One of the latest half of the time, so that long chains come about.
  const Known& any() {
    const int latest = std::min<int>(3, static_cast<int>(values_.size()));
    if (random_.oneIn(2))
      return values_[values_.size() - 1 - static_cast<size_t>(random_.below(latest))];
    return values_[static_cast<size_t>(random_.below(static_cast<int>(values_.size())))];
  }
  std::string constant(const std::string& type, const std::string& value) {
    return text_.constant(type, value);
  }
  std::string integer(int64_t n) { return constant("int", std::to_string(n)); }
  std::string none() { return text_.none(); }
  std::string list(const std::string& type, const std::vector<std::string>& elements) {
    return text_.list(type, elements);
  }
  std::string integers(const std::vector<int64_t>& numbers) {
    std::vector<std::string> names;
    for (int64_t n : numbers) names.push_back(integer(n));
    return list("int", names);
  }
  // A dimension of the tensor, counted from either end.
  int64_t dim(const Tensor& t, int64_t more = 0) {
    const int64_t rank = t.dim() + more;
    const int64_t d = random_.below(static_cast<int>(std::max<int64_t>(rank, 1)));
    return random_.oneIn(2) ? d : d - rank;
  }
  static int64_t sizeAt(const Tensor& t, int64_t d) { return t.size(d < 0 ? d + t.dim() : d); }

  // Adds the node; takes back all of it when it raises.
  void emit(const std::string& op, const std::string& arguments, int results = 1) {
    const std::string before = text_.lines();
    const size_t known = values_.size();
    std::string names, types;
    for (int i = 0; i < results; ++i) {
      std::string name = text_.freshName("%v");
      names += fmt::format("{}{}", i == 0 ? "" : ", ", name);
      types += fmt::format("{}{} : Tensor", i == 0 ? "" : ", ", name);
      values_.push_back({name, Tensor()});
    }
    text_.addLine(fmt::format("{} = aten::{}({})", types, op, arguments));
    settle(known, names, before, op);
  }
  void emitParts(const std::string& op, const std::string& arguments, int64_t results) {
    const std::string before = text_.lines();
    const size_t known = values_.size();
    std::string list = text_.freshName("%l"), names, types;
    text_.addLine(fmt::format("{} : Tensor[] = aten::{}({})", list, op, arguments));
    for (int64_t i = 0; i < results; ++i) {
      std::string name = text_.freshName("%v");
      names += fmt::format("{}{}", i == 0 ? "" : ", ", name);
      types += fmt::format("{}{} : Tensor", i == 0 ? "" : ", ", name);
      values_.push_back({name, Tensor()});
    }
    text_.addLine(fmt::format("{} = prim::ListUnpack({})", types, list));
    settle(known, names, before, op);
  }
  bool isExact(const std::string& op, const std::string& text) const {
    static const std::set<std::string> kInexact = {"softmax",
                                                   "log_softmax",
                                                   "var",
                                                   "std",
                                                   "var_mean",
                                                   "prod",
                                                   "logsumexp",
                                                   "layer_norm",
                                                   "sum",
                                                   "mean",
                                                   "cross_entropy_loss",
                                                   "nll_loss_nd",
                                                   "group_norm",
                                                   "instance_norm",
                                                   "mse_loss",
                                                   "l1_loss",
                                                   "smooth_l1_loss",
                                                   "huber_loss",
                                                   "binary_cross_entropy",
                                                   "binary_cross_entropy_with_logits",
                                                   "kl_div",
                                                   "cosine_similarity",
                                                   "linalg_vector_norm",
                                                   "margin_ranking_loss",
                                                   "poisson_nll_loss",
                                                   "soft_margin_loss",
                                                   "pairwise_distance"};
    if (kInexact.count(op) != 0) return false;
    for (const Known& v : values_) {
      if (v.exact) continue;
      for (const char* end : {",", ")"}) {
        if (text.find(v.name + end) != std::string::npos) return false;
      }
    }
    return true;
  }
  void settle(size_t known, const std::string& names, const std::string& before,
              const std::string& op) {
    auto graph = parseGraph(text_.graph(inputs_, names));
    Outcome outcome = runGraph(graph, program_.arguments);
    bool good = outcome.error.empty();
    for (const Tensor& t : outcome.tensors) good = good && t.numel() <= 20000 && t.dim() <= 5;
    if (!good) {
      values_.resize(known);
      text_.restore(before);
      return;
    }
    const bool exact = isExact(op, text_.lines().substr(before_lists_));
    for (size_t i = 0; i < outcome.tensors.size(); ++i) {
      values_[known + i].tensor = outcome.tensors[i];
      values_[known + i].exact = exact;
    }
  }

  void node() {
    before_lists_ = text_.lines().size();
    const Known x = any();
    if (extended_ && fresh_.oneIn(4)) return extended(x);
    switch (random_.below(13)) {
      case 0:
      case 1:
      case 2:
        return pointwise(x);
      case 12:
        return cast(x);
      case 3:
      case 4:
      case 5:
        return view(x);
      case 6:
        return reshape(x);
      case 7:
        return parts(x);
      case 8:
        return join(x);
      case 9:
        return indexed(x);
      default:
        return reduction(x);
    }
  }

  void pointwise(const Known& x) {
    switch (random_.below(4)) {
      case 0:
        return emit(random_.of<std::string>({"relu", "neg", "abs", "tanh", "sigmoid"}), x.name);
      case 1:
        return emit("mul", x.name + ", " + constant("float", "0.75"));
      default:
        break;
    }
    // Another value that broadcasts with it, when there is one.
    Known y = any();
    for (int i = 0; i < 4 && y.tensor.dim() != x.tensor.dim(); ++i) y = any();
    if (random_.oneIn(2)) {
      return emit(random_.of<std::string>({"add", "sub"}),
                  fmt::format("{}, {}, {}", x.name, y.name, integer(1)));
    }
    if (x.exact && y.exact && random_.oneIn(3)) return emit("lt", x.name + ", " + y.name);
    emit(random_.of<std::string>({"mul", "maximum"}), x.name + ", " + y.name);
  }

  void cast(const Known& x) {
    if (random_.oneIn(3)) return emit("type_as", fmt::format("{}, {}", x.name, any().name));
    const DType dtype = random_.of({DType::Float, DType::Float, DType::Half, DType::Double,
                                    DType::Long, DType::Bool, x.tensor.dtype()});
    if (isFloating(x.tensor.dtype()) && !isFloating(dtype) && !x.exact) return;
    const std::string no = constant("bool", "False");
    emit("to", fmt::format("{}, {}, {}, {}, {}", x.name, integer(static_cast<int64_t>(dtype)), no,
                           no, none()));
  }

  void view(const Known& x) {
    const int64_t rank = x.tensor.dim();
    const int64_t d = dim(x.tensor), n = rank > 0 ? sizeAt(x.tensor, d) : 1;
    if (n == 0) return;
    switch (random_.below(10)) {
      case 0:
        return emit("transpose",
                    fmt::format("{}, {}, {}", x.name, integer(d), integer(dim(x.tensor))));
      case 1:
        return emit("unsqueeze", fmt::format("{}, {}", x.name, integer(dim(x.tensor, 1))));
      case 2:
        return random_.oneIn(2) ? emit("squeeze", x.name)
                                : emit("squeeze", fmt::format("{}, {}", x.name, integer(d)));
      case 3:
        return emit("select", fmt::format("{}, {}, {}", x.name, integer(d),
                                          integer(random_.below(static_cast<int>(2 * n)) - n)));
      case 4: {
        std::string start = random_.oneIn(3) ? none() : integer(random_.below(5) - 2);
        std::string end = random_.oneIn(3) ? none() : integer(random_.below(12) - 2);
        return emit("slice", fmt::format("{}, {}, {}, {}, {}", x.name, integer(d), start, end,
                                         integer(1 + random_.below(3))));
      }
      case 5: {
        const int64_t start = random_.below(static_cast<int>(n));
        return emit("narrow", fmt::format("{}, {}, {}, {}", x.name, integer(d), integer(start),
                                          integer(1 + random_.below(static_cast<int>(n - start)))));
      }
      case 6: {
        std::vector<int64_t> order;
        for (int64_t i = 0; i < rank; ++i) order.push_back(i);
        for (int64_t i = rank; i > 1; --i) {
          std::swap(order[static_cast<size_t>(i - 1)],
                    order[static_cast<size_t>(random_.below(static_cast<int>(i)))]);
        }
        return emit("permute", fmt::format("{}, {}", x.name, integers(order)));
      }
      case 7: {
        std::vector<int64_t> sizes;
        if (random_.oneIn(2)) sizes.push_back(1 + random_.below(3));
        for (int64_t i = 0; i < rank; ++i) {
          sizes.push_back(x.tensor.size(i) == 1 ? 1 + random_.below(4)
                          : random_.oneIn(2)    ? -1
                                                : x.tensor.size(i));
        }
        return emit("expand",
                    fmt::format("{}, {}, {}", x.name, integers(sizes), constant("bool", "False")));
      }
      case 8:
        return emit("t", x.name);
      default:
        return emit("expand_as", x.name + ", " + any().name);
    }
  }

  void reshape(const Known& x) {
    switch (random_.below(4)) {
      case 0: {
        const int64_t first = dim(x.tensor);
        return emit("flatten", fmt::format("{}, {}, {}", x.name, integer(first), integer(-1)));
      }
      case 1:
        return emit("reshape", fmt::format("{}, {}", x.name, integers({-1, 1 + random_.below(4)})));
      default:
        break;
    }
    // Joins two dimensions, or splits one.
    std::vector<int64_t> sizes;
    const int64_t rank = x.tensor.dim();
    const auto at = random_.below(static_cast<int>(std::max<int64_t>(rank, 1)));
    for (int64_t i = 0; i < rank; ++i) {
      const int64_t n = x.tensor.size(i);
      if (i == at && n % 2 == 0 && random_.oneIn(2)) {
        sizes.push_back(2);
        sizes.push_back(n / 2);
      } else if (i == at && i + 1 < rank) {
        sizes.push_back(n * x.tensor.size(i + 1));
        ++i;
      } else {
        sizes.push_back(n);
      }
    }
    emit(random_.oneIn(2) ? "view" : "reshape", fmt::format("{}, {}", x.name, integers(sizes)));
  }

  void parts(const Known& x) {
    if (x.tensor.dim() == 0) return;
    const int64_t d = dim(x.tensor), n = sizeAt(x.tensor, d);
    if (n == 0) return;
    switch (random_.below(4)) {
      case 0: {
        const int64_t chunks = 1 + random_.below(4);
        const int64_t each = (n + chunks - 1) / chunks;
        return emitParts("chunk", fmt::format("{}, {}, {}", x.name, integer(chunks), integer(d)),
                         (n + each - 1) / each);
      }
      case 1: {
        const int64_t each = 1 + random_.below(static_cast<int>(n));
        return emitParts("split", fmt::format("{}, {}, {}", x.name, integer(each), integer(d)),
                         (n + each - 1) / each);
      }
      case 2: {
        const int64_t first = random_.below(static_cast<int>(n));
        return emitParts(
            "split_with_sizes",
            fmt::format("{}, {}, {}", x.name, integers({first, n - first}), integer(d)), 2);
      }
      default:
        if (n > 5) return;
        return emitParts("unbind", fmt::format("{}, {}", x.name, integer(d)), n);
    }
  }

  void join(const Known& x) {
    const int64_t d = dim(x.tensor);
    if (random_.oneIn(3)) {
      std::vector<int64_t> pads;
      const int64_t dims =
          1 + random_.below(static_cast<int>(std::max<int64_t>(x.tensor.dim(), 1)));
      for (int64_t i = 0; i < 2 * dims; ++i) pads.push_back(random_.below(4) - 1);
      return emit("constant_pad_nd",
                  fmt::format("{}, {}, {}", x.name, integers(pads),
                              random_.oneIn(2) ? integer(0) : constant("float", "0.5")));
    }
    std::vector<std::string> names{x.name};
    const int more = 1 + random_.below(3);
    for (int tries = 0; tries < 12 && static_cast<int>(names.size()) <= more; ++tries) {
      const Known& y = any();
      if (y.tensor.dim() == x.tensor.dim() && y.tensor.dtype() == x.tensor.dtype()) {
        names.push_back(y.name);
      }
    }
    const bool stacks = random_.oneIn(2);
    emit(stacks ? "stack" : "cat",
         fmt::format("{}, {}", list("Tensor", names), integer(stacks ? dim(x.tensor, 1) : d)));
  }

  // Indices are mostly within bounds: those that are not must raise in both ways.
  std::string indices(const DimVector& sizes, int64_t below) {
    Tensor t = Tensor::empty(sizes, DType::Long);
    for (int64_t i = 0; i < t.numel(); ++i) {
      t.data<int64_t>()[i] = random_.below(static_cast<int>(std::max<int64_t>(below, 1)));
    }
    const std::string name = input(t);
    values_.pop_back();
    return name;
  }
  void indexed(const Known& x) {
    if (x.tensor.dim() == 0 || program_.arguments.size() > 8) return;
    const int64_t d = dim(x.tensor), n = sizeAt(x.tensor, d);
    switch (random_.below(3)) {
      case 0:
        return emit("index_select", fmt::format("{}, {}, {}", x.name, integer(d),
                                                indices({1 + random_.below(9)}, n)));
      case 1: {
        DimVector sizes(x.tensor.sizes());
        sizes[static_cast<size_t>(d < 0 ? d + x.tensor.dim() : d)] = 1 + random_.below(5);
        for (int64_t& size : sizes) {
          if (random_.oneIn(4)) size = std::max<int64_t>(1, size - 1);
        }
        return emit("gather", fmt::format("{}, {}, {}, {}", x.name, integer(d), indices(sizes, n),
                                          constant("bool", "False")));
      }
      default: {
        DimVector sizes{1 + random_.below(5)};
        if (random_.oneIn(2)) sizes.push_back(1 + random_.below(4));
        const std::string no = constant("bool", "False");
        return emit("embedding",
                    fmt::format("{}, {}, {}, {}, {}", x.name, indices(sizes, x.tensor.size(0)),
                                integer(-1), no, no));
      }
    }
  }

  void classLoss(const Known& x) {
    if (x.tensor.dim() < 2 || !isFloating(x.tensor.dtype()) || program_.arguments.size() > 8) {
      return;
    }
    DimVector sizes(x.tensor.sizes());
    const int64_t classes = sizes[1];
    sizes.erase(1);
    const std::string target = indices(sizes, classes);
    const std::string weight = random_.oneIn(2) ? input(fractions(classes)) : none();
    if (weight == values_.back().name) values_.pop_back();
    const std::string reduction = integer(random_.below(3)),
                      ignored = integer(random_.oneIn(2) ? 0 : -100);
    if (random_.oneIn(2)) {
      return emit("nll_loss_nd",
                  fmt::format("{}, {}, {}, {}, {}", x.name, target, weight, reduction, ignored));
    }
    const std::string smoothing = constant("float", random_.of<std::string>({"0.", "0.125", "1."}));
    if (random_.oneIn(4) && program_.arguments.size() < 10) {
      Tensor shares = Tensor::empty(x.tensor.sizes(), x.tensor.dtype());
      tame(shares);
      const std::string probabilities = input(shares);
      values_.pop_back();
      return emit("cross_entropy_loss", fmt::format("{}, {}, {}, {}, {}, {}", x.name, probabilities,
                                                    weight, reduction, integer(-100), smoothing));
    }
    emit("cross_entropy_loss", fmt::format("{}, {}, {}, {}, {}, {}", x.name, target, weight,
                                           reduction, ignored, smoothing));
  }
  void normalization(const Known& x) {
    if (x.tensor.dim() < 2 || !isFloating(x.tensor.dtype()) || program_.arguments.size() > 6) {
      return;
    }
    const int64_t channels = x.tensor.size(1);
    const auto parameter = [&] {
      const std::string name = input(fractions(channels));
      values_.pop_back();
      return name;
    };
    const std::string nothing = none(), eps = constant("float", "0.001"),
                      no = constant("bool", "False"), yes = constant("bool", "True");
    const std::string weight = random_.oneIn(2) ? parameter() : nothing;
    const std::string bias = random_.oneIn(2) ? parameter() : nothing;
    switch (random_.below(4)) {
      case 0:
      case 1: {
        const int64_t groups = channels % 3 == 0 ? 3 : channels % 2 == 0 ? 2 : 1;
        return emit("group_norm", fmt::format("{}, {}, {}, {}, {}, {}", x.name, integer(groups),
                                              weight, bias, eps, no));
      }
      case 2:
        return emit("instance_norm",
                    fmt::format("{}, {}, {}, {}, {}, {}, {}, {}, {}", x.name, weight, bias, nothing,
                                nothing, yes, constant("float", "0.1"), eps, no));
      default:
        break;
    }
    const std::string mean = parameter(), variance = parameter();
    emit("batch_norm", fmt::format("{}, {}, {}, {}, {}, {}, {}, {}, {}", x.name, weight, bias, mean,
                                   variance, no, constant("float", "0.1"), eps, no));
  }
  // Positive, so that no sum of them is nearly zero.
  Tensor fractions(int64_t n) {
    Tensor t = Tensor::empty({n}, DType::Float);
    for (int64_t i = 0; i < n; ++i)
      t.data<float>()[i] = static_cast<float>(random_.number()) + 0.5F;
    return t;
  }

  void reduction(const Known& x) {
    const std::string d = integer(dim(x.tensor)),
                      keep = constant("bool", random_.of<std::string>({"False", "True"}));
    // Several need not lie side by side.
    const auto dims = [&] {
      std::vector<std::string> all{d};
      while (random_.oneIn(2)) all.push_back(integer(dim(x.tensor)));
      return list("int", all);
    };
    switch (random_.below(15)) {
      case 12:
        return classLoss(x);
      case 13:
      case 14:
        return normalization(x);
      case 0:
        return emit("softmax", fmt::format("{}, {}, {}", x.name, d, none()));
      case 1:
        return emit("log_softmax", fmt::format("{}, {}, {}", x.name, d, none()));
      case 2:
        if (!x.exact) return;
        return emit(random_.of<std::string>({"argmax", "argmin"}),
                    fmt::format("{}, {}, {}", x.name, random_.oneIn(4) ? none() : d, keep));
      case 3:
        if (!x.exact) return;
        return emit(random_.of<std::string>({"any", "all"}),
                    fmt::format("{}, {}, {}", x.name, d, keep));
      case 4:
        if (!x.exact) return;
        return emit(random_.of<std::string>({"max", "min"}),
                    fmt::format("{}, {}, {}", x.name, d, keep), 2);
      case 5:
        return emit(
            random_.of<std::string>({"var", "std"}),
            fmt::format("{}, {}, {}, {}", x.name, dims(),
                        constant("bool", random_.of<std::string>({"False", "True"})), keep));
      case 6:
        return emit("var_mean",
                    fmt::format("{}, {}, {}, {}", x.name, dims(), constant("bool", "False"), keep),
                    2);
      case 7:
        return emit("prod", fmt::format("{}, {}, {}, {}", x.name, d, keep, none()));
      case 8:
        return emit("logsumexp", fmt::format("{}, {}, {}", x.name, dims(), keep));
      case 9: {
        if (x.tensor.dim() == 0) return;
        const std::string nothing = none();
        return emit("layer_norm",
                    fmt::format("{}, {}, {}, {}, {}, {}", x.name,
                                integers({x.tensor.size(x.tensor.dim() - 1)}), nothing, nothing,
                                constant("float", "0.00001"), constant("bool", "False")));
      }
      default:
        break;
    }
    const std::string which = dims();
    if (random_.oneIn(3)) {
      return emit(random_.of<std::string>({"amax", "amin"}),
                  fmt::format("{}, {}, {}", x.name, which, keep));
    }
    emit(random_.of<std::string>({"sum", "mean"}),
         fmt::format("{}, {}, {}, {}", x.name, which, keep, none()));
  }

  // Operators that not all programs have.
  void extended(const Known& x) {
    const bool floats = isFloating(x.tensor.dtype());
    const int64_t rank = x.tensor.dim();
    switch (fresh_.below(6)) {
      case 4: {
        std::vector<int64_t> dims;
        for (int64_t d = 0; d < rank; ++d) {
          if (fresh_.oneIn(2)) dims.push_back(fresh_.oneIn(2) ? d : d - rank);
        }
        return emit("flip", fmt::format("{}, {}", x.name, integers(dims)));
      }
      case 5:
        return emit(fresh_.of<std::string>({"tril", "triu"}),
                    fmt::format("{}, {}", x.name, integer(fresh_.below(9) - 4)));
      case 0:
      case 1:
        if (floats) loss(x);
        return;
      case 2:
        if (rank == 0 || !floats) return;
        for (int64_t d = 0; d < rank; ++d) {
          if (x.tensor.size(d) % 2 == 0) {
            return emit("glu",
                        fmt::format("{}, {}", x.name, integer(fresh_.oneIn(2) ? d : d - rank)));
          }
        }
        return;
      default:
        break;
    }
    if (!floats) return;
    const std::string d = integer(dim(x.tensor));
    const std::string eps = constant("float", "0.01");
    if (fresh_.oneIn(5)) {
      return emit("pairwise_distance",
                  fmt::format("{}, {}, {}, {}, {}", x.name, like(x).name,
                              constant("float", fresh_.of<std::string>({"1.", "2.", "3."})), eps,
                              constant("bool", fresh_.of<std::string>({"False", "True"}))));
    }
    if (fresh_.oneIn(2)) {
      return emit("cosine_similarity", fmt::format("{}, {}, {}, {}", x.name, like(x).name, d, eps));
    }
    const std::string order =
        constant("float", fresh_.of<std::string>({"0.", "1.", "2.", "3.", "inf", "-inf"}));
    const std::string dims = list("int", {d});
    const std::string keep = constant("bool", fresh_.of<std::string>({"False", "True"}));
    // How many are zero changes with the last bit of each.
    if (!x.exact) return;
    emit("linalg_vector_norm",
         fmt::format("{}, {}, {}, {}, {}", x.name, order, dims, keep, none()));
  }
  // Another value of the same shape and dtype, or the same.
  const Known& like(const Known& x) {
    for (int i = 0; i < 6; ++i) {
      const Known& y = any();
      if (y.tensor.dtype() == x.tensor.dtype() &&
          DimVector(y.tensor.sizes()) == DimVector(x.tensor.sizes())) {
        return y;
      }
    }
    return x;
  }
  void loss(const Known& x) {
    const std::string target = like(x).name, reduction = integer(fresh_.below(3));
    const auto number = [&](std::initializer_list<std::string> list) {
      return constant("float", fresh_.of<std::string>(list));
    };
    const auto weight = [&] { return fresh_.oneIn(2) ? none() : like(x).name; };
    switch (fresh_.below(8)) {
      case 6:
        return emit("margin_ranking_loss",
                    fmt::format("{}, {}, {}, {}, {}", x.name, target, like(x).name,
                                number({"0.", "0.3"}), reduction));
      case 7: {
        const auto truth = [&] {
          return constant("bool", fresh_.of<std::string>({"False", "True"}));
        };
        // Logarithms of negative numbers would be everywhere.
        emit("sigmoid", x.name);
        const std::string rates = values_.back().name, is_log = truth(), full = truth(),
                          eps = number({"0.01"});
        return emit("poisson_nll_loss", fmt::format("{}, {}, {}, {}, {}, {}", rates, target, is_log,
                                                    full, eps, reduction));
      }
      case 0:
        return emit("smooth_l1_loss", fmt::format("{}, {}, {}, {}", x.name, target, reduction,
                                                  number({"0.", "0.3", "1."})));
      case 1:
        return emit("huber_loss", fmt::format("{}, {}, {}, {}", x.name, target, reduction,
                                              number({"0.3", "1."})));
      case 2: {
        // Of numbers between zero and one.
        emit("sigmoid", x.name);
        const std::string probabilities = values_.back().name;
        return emit("binary_cross_entropy",
                    fmt::format("{}, {}, {}, {}", probabilities, target, weight(), reduction));
      }
      case 3: {
        const std::string first = weight(), second = weight();
        return emit("binary_cross_entropy_with_logits",
                    fmt::format("{}, {}, {}, {}, {}", x.name, target, first, second, reduction));
      }
      case 4: {
        emit("sigmoid", target);
        const std::string shares = values_.back().name;
        return emit("kl_div",
                    fmt::format("{}, {}, {}, {}", x.name, shares, reduction,
                                constant("bool", fresh_.of<std::string>({"False", "True"}))));
      }
      default:
        return emit(fresh_.of<std::string>({"mse_loss", "l1_loss", "soft_margin_loss"}),
                    fmt::format("{}, {}, {}", x.name, target, reduction));
    }
  }

  Random& random_;
  Random fresh_;
  const bool extended_;
  DType dtype_ = DType::Float;
  Program program_;
  std::vector<Known> values_;
  std::string inputs_;
  GraphText text_;
  size_t before_lists_ = 0;  // where the text of the node and its lists begins
};

}  // namespace

Program randomStructures(Random& random) {
  return StructureMaker(random).make();
}

}  // namespace wick
