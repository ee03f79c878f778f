#include "codegen/loop/views.h"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace wick::loop {

namespace {

using Kind = ViewStep::Kind;

class Application {
 public:
  Application(const ViewStep& step, std::span<const int64_t> numbers,
              std::span<const TensorLayout> tensors, TensorLayout& t)
      : step_(step), numbers_(numbers), tensors_(tensors), t_(t) {}

  ViewOutcome run() {
    switch (step_.kind) {
      case Kind::Expand:
        return expand(wantedSizes());
      case Kind::ExpandAs:
        return expand(sizesOf(tensors_[step_.tensors[0]]));
      case Kind::Reshape:
        return reshape(wantedSizes());
      case Kind::ReshapeAs:
        return reshape(sizesOf(tensors_[step_.tensors[0]]));
      case Kind::Flatten:
        return flatten();
      case Kind::Unflatten:
        return unflatten();
      case Kind::SqueezeAll:
        for (int d = t_.rank; d-- > 0;) {
          if (size(d) == 1) erase(d);
        }
        return ViewOutcome::Done;
      case Kind::Same:
        return ViewOutcome::Done;
      case Kind::Permute:
        return done(permute());
      case Kind::Unsqueeze:
        return done(unsqueeze());
      case Kind::Pad:
        return done(pad());
      case Kind::Flip:
        return done(flip());
      case Kind::Swap:
        return done(swap(step_.dim, step_.other_dim));
      case Kind::Transpose:
        return done(t_.rank == 2 && swap(0, 1));
      default:
        return done(alongDim());
    }
  }

 private:
  static ViewOutcome done(bool right) { return right ? ViewOutcome::Done : ViewOutcome::Wrong; }
  int64_t& size(int d) { return t_.sizes[static_cast<size_t>(d)]; }
  int64_t& stride(int d) { return t_.strides[static_cast<size_t>(d)]; }
  int64_t number(size_t i) const {
    const ViewNumber& n = step_.numbers[i];
    return n.argument < 0 ? n.value : numbers_[static_cast<size_t>(n.argument)];
  }
  DimVector wantedSizes() const {
    DimVector sizes;
    for (size_t i = 0; i < step_.numbers.size(); ++i) sizes.push_back(number(i));
    return sizes;
  }
  static DimVector sizesOf(const TensorLayout& t) {
    return DimVector(t.sizes.begin(), t.sizes.begin() + t.rank);
  }
  // A dimension counted from either end; -1 when there is none.
  static int wrap(int d, int rank) {
    if (d < 0) d += rank;
    return d < 0 || d >= rank ? -1 : d;
  }
  void erase(int d) {
    for (int i = d; i + 1 < t_.rank; ++i) {
      size(i) = size(i + 1);
      stride(i) = stride(i + 1);
    }
    --t_.rank;
  }
  bool keep(int d, int64_t start, int64_t length) {
    int64_t before = 0;
    size(d) = length;
    return !__builtin_mul_overflow(start, stride(d), &before) &&
           !__builtin_add_overflow(t_.offset, before, &t_.offset);
  }

  bool alongDim() {
    const int d = wrap(step_.dim, t_.rank);
    if (d < 0)
      return step_.kind == Kind::Squeeze && t_.rank == 0 && -1 <= step_.dim && step_.dim < 1;
    const int64_t n = size(d);
    const auto part = static_cast<int64_t>(step_.part);
    const auto parts = static_cast<int64_t>(step_.parts);
    switch (step_.kind) {
      case Kind::Select:
      case Kind::Unbind: {
        int64_t at = step_.kind == Kind::Unbind ? part : number(0);
        if (step_.kind == Kind::Unbind && n != parts) return false;
        if (at < -n || at >= n) return false;
        t_.offset += (at < 0 ? at + n : at) * stride(d);
        erase(d);
        return true;
      }
      case Kind::Slice:
        return slice(d);
      case Kind::Narrow: {
        int64_t start = number(0), length = number(1);
        if (start < -n || start > n || length < 0) return false;
        if (start < 0) start += n;
        return length <= n - start && keep(d, start, length);
      }
      case Kind::Chunk:
      case Kind::Split: {
        int64_t each = number(0);
        if (each <= 0 || n == 0) return false;
        if (step_.kind == Kind::Chunk) each = n / each + (n % each != 0);
        if (n / each + (n % each != 0) != parts) return false;
        return keep(d, part * each, std::min(each, n - part * each));
      }
      case Kind::SplitSizes: {
        if (static_cast<int64_t>(step_.numbers.size()) != parts) return false;
        int64_t before = 0, left = n;
        for (size_t i = 0; i < step_.numbers.size(); ++i) {
          if (number(i) < 0 || number(i) > left) return false;
          left -= number(i);
          if (i < step_.part) before += number(i);
        }
        return left == 0 && keep(d, before, number(step_.part));
      }
      case Kind::Sections: {
        if (number(0) != parts) return false;
        const int64_t each = n / parts, more = n % parts;
        return keep(d, part * each + std::min(part, more), each + (part < more));
      }
      case Kind::Squeeze:
        if (n == 1) erase(d);
        return true;
      case Kind::Place: {
        int64_t before = 0, all = 0;
        for (size_t i = 0; i < step_.tensors.size(); ++i) {
          const TensorLayout& joined = tensors_[step_.tensors[i]];
          const int64_t length = joined.sizes[static_cast<size_t>(d)];
          if (i < step_.part) before += length;
          all += length;
        }
        return keep(d, -before, all);
      }
      default:
        return false;
    }
  }

  bool slice(int d) {
    const int64_t n = size(d);
    int64_t start = number(0) == ViewStep::kNone ? 0 : number(0);
    int64_t end = number(1) == ViewStep::kNone ? n : number(1);
    int64_t step = number(2) == ViewStep::kNone ? 1 : number(2);
    if (step <= 0) return false;
    if (start < 0) start += n;
    if (end < 0) end += n;
    start = std::clamp<int64_t>(start, 0, n);
    end = std::clamp<int64_t>(end, start, n);
    if (!keep(d, start, (end - start) / step + ((end - start) % step != 0))) return false;
    return !__builtin_mul_overflow(stride(d), step, &stride(d));
  }

  // Calls f(i, d) for each number i, which names dimension d. False where there is no such dimension, or
  // two numbers name it.
  template <class F>
  bool forDims(F&& f) {
    uint32_t seen = 0;
    for (size_t i = 0; i < step_.numbers.size(); ++i) {
      const int64_t wanted = number(i);
      if (wanted < -t_.rank || wanted >= t_.rank) return false;
      const int d = wrap(static_cast<int>(wanted), t_.rank);
      if (seen >> d & 1) return false;
      seen |= 1u << d;
      f(i, d);
    }
    return true;
  }

  bool permute() {
    if (static_cast<int>(step_.numbers.size()) != t_.rank) return false;
    const TensorLayout from = t_;
    return forDims([&](size_t i, int d) {
      t_.sizes[i] = from.sizes[static_cast<size_t>(d)];
      t_.strides[i] = from.strides[static_cast<size_t>(d)];
    });
  }
  bool swap(int one, int other) {
    const int a = wrap(one, t_.rank), b = wrap(other, t_.rank);
    if (a < 0 || b < 0) return false;
    std::swap(size(a), size(b));
    std::swap(stride(a), stride(b));
    return true;
  }
  bool unsqueeze() {
    const int d = wrap(step_.dim, t_.rank + 1);
    if (d < 0 || t_.rank == kMaxRank) return false;
    const int64_t step = d < t_.rank ? size(d) * stride(d) : 1;
    for (int i = t_.rank; i > d; --i) {
      size(i) = size(i - 1);
      stride(i) = stride(i - 1);
    }
    ++t_.rank;
    size(d) = 1;
    stride(d) = step;
    return true;
  }
  bool pad() {
    const auto dims = static_cast<int>(step_.numbers.size() / 2);
    if (step_.numbers.size() % 2 != 0 || dims > t_.rank) return false;
    for (int k = 0; k < dims; ++k) {
      const int d = t_.rank - 1 - k;
      const int64_t before = number(static_cast<size_t>(2 * k));
      int64_t all;
      if (__builtin_add_overflow(size(d), before, &all) ||
          __builtin_add_overflow(all, number(static_cast<size_t>(2 * k + 1)), &all) || all <= 0) {
        return false;
      }
      if (before == INT64_MIN || !keep(d, -before, all)) return false;
    }
    return true;
  }

  bool flip() {
    return forDims([&](size_t, int d) {
      t_.offset += std::max<int64_t>(size(d) - 1, 0) * stride(d);
      stride(d) = -stride(d);
    });
  }

  ViewOutcome expand(const DimVector& wanted) {
    const auto rank = static_cast<int>(wanted.size());
    const int added = rank - t_.rank;
    if (added < 0 || rank > kMaxRank) return ViewOutcome::Wrong;
    TensorLayout to;
    to.rank = rank;
    to.offset = t_.offset;
    for (int d = rank; d-- > 0;) {
      auto i = static_cast<size_t>(d);
      const int64_t have = d < added ? 1 : size(d - added);
      const int64_t want = wanted[i] == -1 && d >= added ? have : wanted[i];
      if (want < 0 || (have != 1 && have != want)) return ViewOutcome::Wrong;
      const int64_t next = d + 1 < rank ? to.sizes[i + 1] * to.strides[i + 1] : 1;
      to.sizes[i] = want;
      to.strides[i] = have != want ? 0 : d < added ? next : stride(d - added);
    }
    t_ = to;
    return ViewOutcome::Done;
  }

  ViewOutcome flatten() {
    if (t_.rank == 0) return reshape({1});
    const int first = wrap(step_.dim, t_.rank), last = wrap(step_.other_dim, t_.rank);
    if (first < 0 || last < first) return ViewOutcome::Wrong;
    DimVector sizes;
    for (int d = 0; d < t_.rank; ++d) {
      if (d > first && d <= last) {
        if (__builtin_mul_overflow(sizes.back(), size(d), &sizes.back())) return ViewOutcome::Wrong;
      } else {
        sizes.push_back(size(d));
      }
    }
    return first == last ? ViewOutcome::Done : reshape(sizes);
  }
  ViewOutcome unflatten() {
    const int at = wrap(step_.dim, t_.rank);
    if (at < 0) return ViewOutcome::Wrong;
    DimVector sizes;
    int64_t known = 1;
    size_t open = 0;
    for (size_t i = 0; i < step_.numbers.size(); ++i) {
      if (number(i) == -1) {
        ++open;
      } else if (number(i) < 0 || __builtin_mul_overflow(known, number(i), &known)) {
        return ViewOutcome::Wrong;
      }
    }
    if (open > 1 || (open == 1 && (known == 0 || size(at) % known != 0)) ||
        (open == 0 && known != size(at))) {
      return ViewOutcome::Wrong;
    }
    for (int d = 0; d < t_.rank; ++d) {
      if (d != at) {
        sizes.push_back(size(d));
        continue;
      }
      for (size_t i = 0; i < step_.numbers.size(); ++i) {
        sizes.push_back(number(i) == -1 ? size(at) / known : number(i));
      }
    }
    return reshape(sizes);
  }

  ViewOutcome reshape(DimVector wanted) {
    int64_t elements = 1, known = 1;
    for (int d = 0; d < t_.rank; ++d) elements *= size(d);
    size_t open = wanted.size();
    if (wanted.size() > static_cast<size_t>(kMaxRank)) return ViewOutcome::Wrong;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] == -1 && open == wanted.size()) {
        open = i;
      } else if (wanted[i] < 0 || __builtin_mul_overflow(known, wanted[i], &known)) {
        return ViewOutcome::Wrong;
      }
    }
    if (open < wanted.size()) {
      if (known == 0 || elements % known != 0) return ViewOutcome::Wrong;
      wanted[open] = elements / known;
    } else if (known != elements) {
      return ViewOutcome::Wrong;
    }
    // Without elements any strides will do, but which ones the operator chooses is its own affair.
    if (elements == 0) return ViewOutcome::Wrong;
    TensorLayout to;
    to.rank = static_cast<int>(wanted.size());
    to.offset = t_.offset;
    std::copy(wanted.begin(), wanted.end(), to.sizes.begin());
    if (restride(to)) {
      t_ = to;
      return ViewOutcome::Done;
    }
    if (!step_.may_copy) return ViewOutcome::Wrong;
    layRowMajor(to);
    t_ = to;
    return ViewOutcome::Copies;
  }

  // Dimensions that lie one after the other in memory are one stretch, which the wanted sizes
  // divide anew.
  bool restride(TensorLayout& to) {
    if (t_.rank == 0) {
      for (int d = 0; d < to.rank; ++d) to.strides[static_cast<size_t>(d)] = 1;
      return true;
    }
    int view = to.rank - 1;
    int64_t base = stride(t_.rank - 1), stretch = 1, placed = 1;
    for (int d = t_.rank; d-- > 0;) {
      stretch *= size(d);
      const bool ends = d == 0 || (size(d - 1) != 1 && stride(d - 1) != stretch * base);
      if (!ends) continue;
      while (view >= 0 && (placed < stretch || to.sizes[static_cast<size_t>(view)] == 1)) {
        to.strides[static_cast<size_t>(view)] = placed * base;
        placed *= to.sizes[static_cast<size_t>(view)];
        --view;
      }
      if (placed != stretch) return false;
      if (d > 0) {
        base = stride(d - 1);
        stretch = placed = 1;
      }
    }
    return view == -1;
  }

  const ViewStep& step_;
  std::span<const int64_t> numbers_;
  std::span<const TensorLayout> tensors_;
  TensorLayout& t_;
};

// Takes a node's arguments for the steps.
class Reader {
 public:
  Reader(const Node* node, const ValueNumbers& numbers) : node_(node), numbers_(numbers) {}
  ViewStep step;
  bool good = true;

  int dim(size_t i) {
    auto value = constantOf(node_->input(i));
    if (!value || !value->isInt() || value->toInt() < -kMaxRank || value->toInt() >= kMaxRank) {
      good = false;
      return 0;
    }
    return static_cast<int>(value->toInt());
  }
  void number(size_t i) { step.numbers.push_back(numberOf(node_->input(i))); }
  void list(size_t i) {
    const Value* v = node_->input(i);
    if (auto value = constantOf(v)) {
      if (!value->isList() && !value->isInt()) {
        good = false;
      } else {
        for (int64_t n : value->toDims()) step.numbers.push_back({n, -1});
      }
    } else if (v->node()->kind() == prim::ListConstruct) {
      for (const Value* e : v->node()->inputs()) step.numbers.push_back(numberOf(e));
    } else {
      good = false;
    }
    good &= step.numbers.size() <= 64;
  }
  void tensor(size_t i) { step.tensors.push_back(numbers_.tensor(node_->input(i))); }

 private:
  ViewNumber numberOf(const Value* v) {
    if (auto value = constantOf(v)) {
      if (value->isNone()) return {ViewStep::kNone, -1};
      if (value->isInt()) return {value->toInt(), -1};
      good = false;
      return {};
    }
    const int32_t argument = numbers_.argument(v);
    good &= argument >= 0;
    return {0, argument};
  }

  const Node* node_;
  const ValueNumbers& numbers_;
};

struct Rule {
  Kind kind;
  void (*read)(Reader& r);
};
void dimOnly(Reader& r) {
  r.step.dim = r.dim(1);
}
void twoDims(Reader& r) {
  r.step.dim = r.dim(1);
  r.step.other_dim = r.dim(2);
}
void listOnly(Reader& r) {
  r.list(1);
}
void tensorOnly(Reader& r) {
  r.tensor(1);
}
void nothing(Reader&) {}
void numberThenDim(Reader& r) {
  r.number(1);
  r.step.dim = r.dim(2);
}
void listThenDim(Reader& r) {
  r.list(1);
  r.step.dim = r.dim(2);
}
template <size_t kCount>
void dimThenNumbers(Reader& r) {
  r.step.dim = r.dim(1);
  for (size_t i = 0; i < kCount; ++i) r.number(2 + i);
}
void dimThenList(Reader& r) {
  r.step.dim = r.dim(1);
  r.list(2);
}
void copyingList(Reader& r) {
  r.step.may_copy = true;
  r.list(1);
}
void copyingTensor(Reader& r) {
  r.step.may_copy = true;
  r.tensor(1);
}
void copyingDims(Reader& r) {
  r.step.may_copy = true;
  twoDims(r);
}

// By name and overload.
const std::unordered_map<std::string, Rule>& rules() {
  static const auto* table = new std::unordered_map<std::string, Rule>{
      {"aten::select.int", {Kind::Select, dimThenNumbers<1>}},
      {"aten::slice.Tensor", {Kind::Slice, dimThenNumbers<3>}},
      {"aten::narrow", {Kind::Narrow, dimThenNumbers<2>}},
      {"aten::unbind.int", {Kind::Unbind, dimOnly}},
      {"aten::chunk", {Kind::Chunk, numberThenDim}},
      {"aten::split.Tensor", {Kind::Split, numberThenDim}},
      {"aten::split.sizes", {Kind::SplitSizes, listThenDim}},
      {"aten::split", {Kind::SplitSizes, listThenDim}},
      {"aten::split_with_sizes", {Kind::SplitSizes, listThenDim}},
      {"aten::tensor_split.sections", {Kind::Sections, numberThenDim}},
      {"aten::permute", {Kind::Permute, listOnly}},
      {"aten::transpose.int", {Kind::Swap, twoDims}},
      {"aten::swapaxes", {Kind::Swap, twoDims}},
      {"aten::swapdims", {Kind::Swap, twoDims}},
      {"aten::t", {Kind::Transpose, nothing}},
      {"aten::unsqueeze", {Kind::Unsqueeze, dimOnly}},
      {"aten::squeeze.dim", {Kind::Squeeze, dimOnly}},
      {"aten::squeeze", {Kind::SqueezeAll, nothing}},
      {"aten::expand", {Kind::Expand, listOnly}},
      {"aten::expand_as", {Kind::ExpandAs, tensorOnly}},
      {"aten::view", {Kind::Reshape, listOnly}},
      {"aten::view_as", {Kind::ReshapeAs, tensorOnly}},
      {"aten::reshape", {Kind::Reshape, copyingList}},
      {"aten::reshape_as", {Kind::ReshapeAs, copyingTensor}},
      {"aten::flatten.using_ints", {Kind::Flatten, copyingDims}},
      {"aten::unflatten.int", {Kind::Unflatten, dimThenList}},
  };
  return *table;
}

const Rule* ruleOf(const Node* node) {
  const Operator* op = node->maybeOperator();
  if (!op || op->form() != Operator::Form::Base || node->inputs().empty() ||
      node->input(0)->type()->kind() != TypeKind::Tensor) {
    return nullptr;
  }
  const FunctionSchema& schema = op->schema();
  std::string name = schema.name();
  if (!schema.overload().empty()) name += "." + std::string(schema.overload());
  auto it = rules().find(name);
  return it == rules().end() ? nullptr : &it->second;
}

// The node that names the views.
const Node* viewNode(const Node* node) {
  return node->kind() == prim::ListUnpack ? node->input(0)->node() : node;
}
bool givesParts(Kind kind) {
  return Kind::Unbind <= kind && kind <= Kind::Sections;
}

}  // namespace

ViewOutcome applyView(const ViewStep& step, std::span<const int64_t> numbers,
                      std::span<const TensorLayout> tensors, TensorLayout& t) {
  const ViewOutcome outcome = Application(step, numbers, tensors, t).run();
  return fits(t) ? outcome : ViewOutcome::Wrong;
}

bool isView(const Node* node) {
  const Rule* rule = ruleOf(viewNode(node));
  if (!rule) return false;
  for (const Value* v : viewNode(node)->inputs()) {
    const bool is_list = v->type()->kind() == TypeKind::List;
    if (is_list && v->node()->kind() != prim::ListConstruct &&
        v->node()->kind() != prim::Constant) {
      return false;
    }
  }
  if (!givesParts(rule->kind)) return node->kind() != prim::ListUnpack;
  // While a group is gathered, the list is read by the group that has the prim::ListUnpack.
  const Value* list = viewNode(node)->output();
  return list->uses().size() == 1 && (list->uses()[0].user->kind() == prim::ListUnpack ||
                                      list->uses()[0].user->kind() == prim::FusionGroup);
}

const Value* viewOperand(const Node* node) {
  return viewNode(node)->input(0);
}

std::optional<std::vector<ViewStep>> viewsOf(const Node* node, const ValueNumbers& numbers) {
  const Node* named = viewNode(node);
  const Rule* rule = ruleOf(named);
  if (!rule) return std::nullopt;
  Reader reader(named, numbers);
  reader.step.kind = rule->kind;
  rule->read(reader);
  if (!reader.good) return std::nullopt;
  std::vector<ViewStep> steps;
  for (size_t i = 0; i < node->outputs().size(); ++i) {
    reader.step.part = static_cast<uint32_t>(i);
    reader.step.parts = static_cast<uint32_t>(node->outputs().size());
    steps.push_back(reader.step);
  }
  return steps;
}

}  // namespace wick::loop
