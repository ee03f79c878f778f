#include "codegen/cuda/kernel_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "codegen/cuda/pairs.h"
#include "codegen/loop/emission.h"
#include "codegen/text/lines.h"

namespace wick::codegen {

namespace {

using loop::Kernel;
using loop::LaneStep;
using loop::Leaf;
using loop::ReduceOp;

std::string word(size_t i) {
  return fmt::format("p.w[{}]", i);
}

class KernelText : Lines {
 public:
  KernelText(const std::string& name, const Kernel& kernel, const CudaLayout& layout,
             bool joint = false)
      : name_(name),
        joint_(joint),
        kernel_(kernel),
        layout_(layout),
        words_(kernel, layout),
        schedule_(loop::makeSchedule(kernel)),
        pairs_(layout.vector > 1 &&
               std::ranges::any_of(kernel.expression.nodes(),
                                   [](const auto& n) { return isReducedFloat(n.type); })) {
    if (words_.count > kMaxCudaWords) throw NoCudaText("a kernel of too many arguments");
    for (size_t r = 0; r < kernel.reductions.size(); ++r) {
      const DType type = kernel.expression[kernel.reductions[r].operand].type;
      if (isReducedFloat(type)) throw NoCudaText("a reduction in a reduced float");
    }
  }

  std::string run() {
    text_ = cudaPreamble(kernel_.expression);
    if (pairs_) text_ += pairPreamble();
    text_ += fmt::format("struct wickWords {{ long long w[{}]; }};\n", words_.count);
    const char* index = layout_.wide ? "long long" : "int";
    text_ += fmt::format("typedef {} wickIndex;\n", index);
    declareVectors();
    for (size_t r = 0; r < kernel_.reductions.size(); ++r) declareCombine(r);
    if (joint_) {
      beginJoint();
    } else {
      text_ += fmt::format(
          "extern \"C\" __global__ void __launch_bounds__({}) {}(const __grid_constant__ wickWords "
          "p) {{\n",
          layout_.block, name_);
    }
    for (size_t a = 0; a < kernel_.accesses.size(); ++a) {
      if (kernel_.accesses[a].isIndex()) continue;
      line("char* const base{} = (char*){};", a, word(words_.base(a)));
    }
    for (size_t i = 0; i < kernel_.numbers.size(); ++i) {
      line("const {} number{} = {};", cudaType(kernel_.numbers[i].type), i,
           cudaFromBits(word(words_.number(i)), kernel_.numbers[i].type));
    }
    if (!kernel_.checks.empty()) line("bool bad = false;");
    if (kernel_.reduced == 0) {
      points();
    } else {
      rows();
    }
    if (!kernel_.checks.empty()) {
      line("if (bad) *(volatile long long*){} = {};", word(words_.flag), word(words_.flag + 1));
    }
    text_ += "}\n";
    return std::move(text_);
  }

 private:
  // Each block looks for the call that it belongs to.
  void beginJoint() {
    text_ += fmt::format("struct wickCalls {{ wickWords of[{0}]; unsigned ends[{0}]; }};\n",
                         cudaCallsTogether(words_));
    text_ += fmt::format(
        "extern \"C\" __global__ void __launch_bounds__({}) {}(const __grid_constant__ wickCalls "
        "all) {{\n",
        layout_.block, name_);
    line("unsigned call = 0;");
    line("while (blockIdx.x >= all.ends[call]) ++call;");
    line("const wickWords& p = all.of[call];");
    line("const unsigned ours = call == 0 ? 0 : all.ends[call - 1];");
    line("const unsigned block = blockIdx.x - ours, blocks = all.ends[call] - ours;");
  }
  const char* block() const { return joint_ ? "block" : "blockIdx.x"; }
  const char* blocks() const { return joint_ ? "blocks" : "gridDim.x"; }

  static int64_t itemOf(const loop::Access& access) {
    return static_cast<int64_t>(itemSize(access.dtype));
  }
  bool isVector(size_t a) const {
    return layout_.vector > 1 && layout_.steps[a] == LaneStep::Unit &&
           !kernel_.accesses[a].isIndex();
  }
  // What moves a vector of such elements.
  std::string vectorType(DType type) const {
    const size_t bytes = itemSize(type) * static_cast<size_t>(layout_.vector);
    switch (bytes) {
      case 2:
        return "unsigned short";
      case 4:
        return "unsigned";
      case 8:
        return "uint2";
      case 16:
        return "uint4";
      default:
        return fmt::format("wickVector{}", bytes);
    }
  }
  // The elements of an access that a thread takes at once, and what moves them together if something
  // does.
  std::string elementsOf(size_t a) const {
    const DType type = kernel_.accesses[a].dtype;
    if (!isVector(a)) return fmt::format("struct {{ {} e[{}]; }}", cudaType(type), layout_.vector);
    if (pairs_ && isReducedFloat(type)) {
      return fmt::format("union {{ {} all; {} e[{}]; {} pair[{}]; }}", vectorType(type),
                         cudaType(type), layout_.vector, pairType(type), layout_.vector / 2);
    }
    return fmt::format("union {{ {} all; {} e[{}]; }}", vectorType(type), cudaType(type),
                       layout_.vector);
  }

  // No instruction moves more than 16 bytes.
  void declareVectors() {
    std::set<size_t> sizes;
    for (size_t a = 0; a < kernel_.accesses.size(); ++a) {
      const size_t bytes =
          itemSize(kernel_.accesses[a].dtype) * static_cast<size_t>(layout_.vector);
      if (isVector(a) && bytes > 16) sizes.insert(bytes);
    }
    for (const size_t bytes : sizes) {
      text_ += fmt::format("struct wickVector{} {{ uint4 parts[{}]; }};\n", bytes, bytes / 16);
    }
  }

  // ---- reductions ----

  std::string identity(size_t r) const {
    const loop::Reduction& reduction = kernel_.reductions[r];
    return cudaText(loop::identityNode(reduction.op, kernel_.expression[reduction.operand].type),
                    {}, {});
  }

  void declareCombine(size_t r) {
    const loop::Reduction& reduction = kernel_.reductions[r];
    const DType type = kernel_.expression[reduction.operand].type;
    const std::string t = cudaType(type);
    std::string body;
    const bool wraps = !isFloating(type);
    const auto infix = [&](const char* sign) {
      return wraps ? fmt::format("({})((unsigned long long)a {} (unsigned long long)b)", t, sign)
                   : fmt::format("a {} b", sign);
    };
    switch (reduction.op) {
      case ReduceOp::Sum:
        body = infix("+");
        break;
      case ReduceOp::Prod:
        body = infix("*");
        break;
      case ReduceOp::Any:
        body = "a | b";
        break;
      case ReduceOp::All:
        body = "a & b";
        break;
      case ReduceOp::Min:
        body = isFloating(type) ? "a != a || a < b ? a : b" : "a < b ? a : b";
        break;
      case ReduceOp::Max:
        body = isFloating(type) ? "a != a || b < a ? a : b" : "b < a ? a : b";
        break;
    }
    text_ += fmt::format(
        "__device__ __forceinline__ {0} combine{1}({0} a, {0} b) {{ return {2}; }}\n", t, r, body);
    const int lanes = layout_.columns ? 1 : std::min(layout_.threads, 32);
    // Narrow types travel as int.
    const bool narrow = itemSize(type) < 4;
    const std::string carrier = narrow ? "int" : t;
    text_ += fmt::format("__device__ __forceinline__ {0} joined{1}({0} v, int lane, int sub) {{\n",
                         t, r);
    for (int step = lanes / 2; step > 0; step /= 2) {
      text_ += fmt::format("  v = combine{0}(v, ({1})__shfl_xor_sync(0xffffffffu, ({2})v, {3}));\n",
                           r, t, carrier, step);
    }
    if (layout_.columns && layout_.threads > 1) {
      text_ += fmt::format(
          "  __shared__ {0} shared[{1}];\n"
          "  const int rows = {2};\n"
          "  shared[lane * rows + sub] = v;\n"
          "  __syncthreads();\n"
          "#pragma unroll\n"
          "  for (int step = {3}; step > 0; step /= 2) {{\n"
          "    if (lane < step) shared[lane * rows + sub] = combine{4}(shared[lane * rows + sub], "
          "shared[(lane + step) * rows + sub]);\n"
          "    __syncthreads();\n"
          "  }}\n"
          "  v = shared[sub];\n"
          "  __syncthreads();\n",
          t, layout_.block, layout_.block / layout_.threads, layout_.threads / 2, r);
    } else if (layout_.threads > 32) {
      const int warps = layout_.threads / 32;
      text_ += fmt::format(
          "  __shared__ {0} shared[{1}];\n"
          "  if (lane % 32 == 0) shared[sub * {2} + lane / 32] = v;\n"
          "  __syncthreads();\n"
          "  v = shared[sub * {2}];\n"
          "#pragma unroll\n"
          "  for (int i = 1; i < {2}; ++i) v = combine{3}(v, shared[sub * {2} + i]);\n"
          "  __syncthreads();\n",
          t, layout_.block / 32, warps, r);
    }
    text_ += "  return v;\n}\n";
  }

  // ---- nodes ----

  std::string name(ScalarExpr e) const { return fmt::format("n{}{}", e.id, suffix_); }

  // Whether the leaf is read as a vector, or once for a vector, before its elements are computed.
  bool isLoadedAhead(const Leaf& leaf) const {
    return leaf.kind == Leaf::Kind::Load && !leaf.offset.valid() && !leaf.mask.valid();
  }
  bool isKept(size_t node) const { return kept_.count(static_cast<int32_t>(node)) != 0; }

  // The address of the point's element: `at` names the offsets of the point.
  std::string address(uint32_t access) const { return fmt::format("(base{0} + at{0})", access); }

  // Loads what is needed and can be loaded for the whole vector; `slot` is where kept values are.
  void loadAhead(const std::vector<bool>& needed, const std::string& slot, bool first_pass) {
    const auto& nodes = kernel_.expression.nodes();
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (!needed[i] || nodes[i].op != ScalarOp::Input) continue;
      const Leaf& leaf = kernel_.leaves[nodes[i].payload];
      if (!isLoadedAhead(leaf)) continue;
      const std::string type = cudaType(nodes[i].type);
      const bool kept = isKept(i);
      if (kept && !first_pass) continue;
      const size_t a = leaf.index;
      if (layout_.steps[a] == LaneStep::Zero) {
        line("const {0} x{1} = *(const {0}*){2};", type, i, address(leaf.index));
        continue;
      }
      const std::string to = kept ? fmt::format("kept{}[{}]", i, slot) : fmt::format("x{}", i);
      if (!kept) line("{} x{};", elementsOf(a), i);
      if (isVector(a)) {
        line("{}.all = *(const {}*){};", to, vectorType(nodes[i].type), address(leaf.index));
      } else {
        line("#pragma unroll");
        line("for (int v = 0; v < {}; ++v) {}.e[v] = *(const {}*)({} + v * {});", layout_.vector,
             to, type, address(leaf.index), word(words_.elementStep(a)));
      }
    }
  }

  std::string leafText(size_t i, const Leaf& leaf, const std::string& slot) const {
    const std::string type = cudaType(kernel_.expression.nodes()[i].type);
    switch (leaf.kind) {
      case Leaf::Kind::Number:
        return fmt::format("number{}", leaf.index);
      case Leaf::Kind::Count:
        return cudaConvert("points", DType::Long, leaf.type);
      case Leaf::Kind::Reduction:
        return fmt::format("r{}", leaf.index);
      case Leaf::Kind::Index:
        return fmt::format("(at{} + {} * {})", leaf.index, place_,
                           word(words_.elementStep(leaf.index)));
      case Leaf::Kind::Load:
        break;
    }
    if (isLoadedAhead(leaf)) {
      if (isKept(i)) return fmt::format("kept{}[{}].e[{}]", i, slot, place_);
      const bool one = layout_.steps[leaf.index] == LaneStep::Zero || one_;
      return one ? fmt::format("x{}", i) : fmt::format("x{}.e[{}]", i, place_);
    }
    std::string at = fmt::format("{} + {} * {}", address(leaf.index), place_,
                                 word(words_.elementStep(leaf.index)));
    if (leaf.offset.valid()) at += " + " + name(leaf.offset);
    std::string read = fmt::format("*(const {}*)({})", type, at);
    if (!leaf.mask.valid()) return read;
    const std::string zero = isReducedFloat(leaf.type) ? type + "{0}" : fmt::format("({})0", type);
    return fmt::format("{} ? {} : {}", name(leaf.mask), read, zero);
  }

  void computeNode(size_t i, const std::string& slot) {
    const ScalarNode& node = kernel_.expression.nodes()[i];
    std::string value;
    if (node.op == ScalarOp::Input) {
      value = leafText(i, kernel_.leaves[node.payload], slot);
    } else {
      std::array<ScalarExpr, 3> operands;
      const size_t n = kernel_.operandsOf({static_cast<int32_t>(i)}, operands);
      std::array<std::string, 3> in;
      std::array<DType, 3> types;
      for (size_t k = 0; k < n; ++k) {
        in[k] = name(operands[k]);
        types[k] = kernel_.expression[operands[k]].type;
      }
      value = cudaText(node, std::span(in).first(n), std::span(types).first(n));
    }
    line("const {} {} = {};", cudaType(node.type), name({static_cast<int32_t>(i)}), value);
  }
  void computeNodes(const std::vector<bool>& needed, const std::string& slot) {
    for (size_t i = 0; i < needed.size(); ++i) {
      if (!needed[i]) continue;
      if (!pairs_ || one_) {
        computeNode(i, slot);
      } else if (isReducedFloat(kernel_.expression.nodes()[i].type)) {
        computePair(i, slot);
      } else {
        forEachOfPair([&] { computeNode(i, slot); });
      }
    }
  }

  // Elements v and v + 1, whose nodes are called n5a and n5b; pairs of reduced floats n5.
  template <class F>
  void forEachOfPair(F&& body) {
    for (const char* suffix : {"a", "b"}) {
      suffix_ = suffix;
      place_ = *suffix == 'a' ? "v" : "(v + 1)";
      body();
    }
    suffix_.clear();
    place_ = "v";
  }
  // Runs `body` for each element that a turn of the loop over a vector takes.
  template <class F>
  void forEachElement(F&& body) {
    if (pairs_) {
      forEachOfPair(body);
    } else {
      body();
    }
  }
  void computePair(size_t i, const std::string& slot) {
    const auto id = static_cast<int32_t>(i);
    const ScalarNode& node = kernel_.expression.nodes()[i];
    const std::string type = pairType(node.type);
    std::optional<std::string> pair = pairText(kernel_.expression, {id});
    if (node.op == ScalarOp::Input) {
      const Leaf& leaf = kernel_.leaves[node.payload];
      if (isLoadedAhead(leaf) && isVector(leaf.index)) {
        pair = isKept(i) ? fmt::format("kept{}[{}].pair[v / 2]", i, slot)
                         : fmt::format("x{}.pair[v / 2]", i);
      }
    } else if (!pair && node.op == ScalarOp::Convert &&
               kernel_.expression[node.operands[0]].type == DType::Float) {
      const int32_t from = node.operands[0].id;
      pair = pairOfFloats(node.type, fmt::format("n{}a", from), fmt::format("n{}b", from));
    }
    if (!pair) {
      forEachOfPair([&] { computeNode(i, slot); });
      line("const {} n{} = {};", type, i, pairOf(fmt::format("n{}a", i), fmt::format("n{}b", i)));
      return;
    }
    line("const {} n{} = {};", type, i, *pair);
    const std::string element = cudaType(node.type);
    line("const {0} n{1}a = wickLow(n{1}), n{1}b = wickHigh(n{1});", element, i);
  }

  void storeInVector(const loop::Store& store) {
    if (pairs_ && isVector(store.access) && isReducedFloat(kernel_.expression[store.value].type)) {
      line("y{}.pair[v / 2] = n{};", store.access, store.value.id);
      return;
    }
    forEachElement([&] { line("y{}.e[{}] = {};", store.access, place_, name(store.value)); });
  }

  // `work`: of a vector of points.
  void computeVector(const loop::PassWork& work, const std::string& slot, bool first_pass) {
    const std::vector<bool> needed = loop::neededFor(kernel_, work.roots(kernel_));
    loadAhead(needed, slot, first_pass);
    for (const loop::Store* store : work.stores) {
      line("{} y{};", elementsOf(store->access), store->access);
    }
    line("#pragma unroll");
    open(fmt::format("for (int v = 0; v < {}; v += {})", layout_.vector, pairs_ ? 2 : 1));
    computeNodes(needed, slot);
    forEachElement([&] {
      for (const ScalarExpr check : work.checks) line("bad = bad || !{};", name(check));
      for (const size_t r : work.reductions) {
        line("sum{0} = combine{0}(sum{0}, {1});", r, name(kernel_.reductions[r].operand));
      }
    });
    for (const loop::Store* store : work.stores) storeInVector(*store);
    close();
    for (const loop::Store* store : work.stores) {
      const size_t a = store->access;
      const DType type = kernel_.accesses[a].dtype;
      if (isVector(a)) {
        line("*({}*){} = y{}.all;", vectorType(type), address(store->access), a);
      } else {
        line("#pragma unroll");
        line("for (int v = 0; v < {}; ++v) *({}*)({} + v * {}) = y{}.e[v];", layout_.vector,
             cudaType(type), address(store->access), word(words_.elementStep(a)), a);
      }
    }
  }

  // ---- walks ----

  // Offsets of accesses from those named `before`, moved by `step` for each access.
  template <class F>
  void offsets(const std::string& prefix, F&& terms) {
    for (size_t a = 0; a < kernel_.accesses.size(); ++a) {
      std::string sum = terms(a);
      line("const long long {}{} = {};", prefix, a, sum);
    }
  }
  std::string elementOffset(size_t a, const std::string& element) const {
    const loop::Access& access = kernel_.accesses[a];
    switch (layout_.steps[a]) {
      case LaneStep::Zero:
        return "";
      case LaneStep::Unit:
        return fmt::format(" + {} * {}ll", element, access.isIndex() ? 1 : itemOf(access));
      default:
        return fmt::format(" + {} * {}", element, word(words_.elementStep(a)));
    }
  }
  // Names i0, i1, … of the outer dimensions of `row`.
  void outerIndices(const std::string& row) {
    if (layout_.outer == 0) return;
    line("wickIndex rest = {};", row);
    for (int d = 0; d < layout_.outer; ++d) {
      if (d + 1 == layout_.outer) {
        line("const wickIndex i{} = rest;", d);
      } else {
        line("const wickIndex i{0} = rest % (wickIndex){1}; rest /= (wickIndex){1};", d,
             word(words_.outerSize(d)));
      }
    }
  }
  std::string outerOffset(size_t a) const {
    std::string sum = kernel_.accesses[a].isIndex() ? word(words_.base(a)) : "0";
    for (int d = 0; d < layout_.outer; ++d) {
      sum += fmt::format(" + i{} * {}", d, word(words_.outerStep(a, d)));
    }
    return sum;
  }

  void points() {
    loop::PassWork work;
    for (const loop::Store& store : kernel_.stores) work.stores.push_back(&store);
    work.checks = kernel_.checks;
    line("const long long points = 1;");
    line("const wickIndex chunks = (wickIndex)({} / {});", word(words_.kElements), layout_.vector);
    line("const wickIndex total = chunks * (wickIndex){};", word(words_.kRows));
    open(
        fmt::format("for (wickIndex c = (wickIndex){1} * {0} + threadIdx.x; c < total; c += "
                    "(wickIndex){2} * {0})",
                    layout_.block, block(), blocks()));
    if (layout_.outer > 0) {
      line("const wickIndex row = c / chunks;");
      line("const long long e = (long long)(c - row * chunks) * {};", layout_.vector);
    } else {
      line("const long long e = (long long)c * {};", layout_.vector);
    }
    outerIndices("row");
    offsets("at", [&](size_t a) { return outerOffset(a) + elementOffset(a, "e"); });
    computeVector(work, "", true);
    close();
  }

  void rows() {
    const int rows_of_block = layout_.block / layout_.threads;
    if (layout_.columns) {
      line("const int lane = threadIdx.x / {0}, sub = threadIdx.x % {0};", rows_of_block);
    } else {
      line("const int lane = threadIdx.x % {0}, sub = threadIdx.x / {0};", layout_.threads);
    }
    line("const long long pieces = 1{};", nestedCount());
    line("const long long points = {} * pieces;", word(words_.kElements));
    line("const long long all_rows = {};", word(words_.kRows));
    open(
        fmt::format("for (long long first = (long long){1} * {0}; first < all_rows; first += "
                    "(long long){2} * {0})",
                    rows_of_block, block(), blocks()));
    line("const bool exists = first + sub < all_rows;");
    line("const long long row = exists ? first + sub : all_rows - 1;");
    outerIndices("(wickIndex)row");
    offsets("row", [&](size_t a) { return outerOffset(a); });
    planKept();
    for (int pass = 0; pass < schedule_.passes; ++pass) onePass(pass);
    storeRow();
    close();
  }
  std::string nestedCount() const {
    std::string product;
    for (int l = 0; l < layout_.nested; ++l) {
      product += fmt::format(" * {}", word(words_.nestedSize(l)));
    }
    return product;
  }

  // Loads that several passes read stay in registers.
  void planKept() {
    if (layout_.kept == 0) return;
    std::vector<int> passes(kernel_.expression.nodes().size());
    for (int pass = 0; pass < schedule_.passes; ++pass) {
      const std::vector<bool> needed =
          loop::neededFor(kernel_, loop::workOf(kernel_, schedule_, pass).roots(kernel_));
      for (size_t i = 0; i < needed.size(); ++i) {
        // A value that the first pass does not read could not be kept by it.
        if (needed[i] && (pass == 0 || passes[i] > 0)) ++passes[i];
      }
    }
    const auto& nodes = kernel_.expression.nodes();
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (passes[i] < 2 || nodes[i].op != ScalarOp::Input || !schedule_.varies[i]) continue;
      const Leaf& leaf = kernel_.leaves[nodes[i].payload];
      if (!isLoadedAhead(leaf) || layout_.steps[leaf.index] == LaneStep::Zero) continue;
      kept_.insert(static_cast<int32_t>(i));
      line("{} kept{}[{}];", elementsOf(leaf.index), i, layout_.kept);
    }
  }

  void onePass(int pass) {
    const loop::PassWork work = loop::workOf(kernel_, schedule_, pass);
    if (work.empty()) return;
    for (const size_t r : work.reductions) {
      line("{} sum{} = {};", cudaType(kernel_.expression[kernel_.reductions[r].operand].type), r,
           identity(r));
    }
    const int stride = layout_.threads * layout_.vector;
    if (layout_.kept > 0) {
      line("#pragma unroll");
      open(fmt::format("for (int k = 0; k < {}; ++k)", layout_.kept));
      line("const long long i = (long long)(k * {} + lane) * {};", layout_.threads, layout_.vector);
      open("if (i < points && exists)");
    } else {
      open(fmt::format("for (long long i = lane * {0}; i < points && exists; i += {1})",
                       layout_.vector, stride));
    }
    if (layout_.nested > 0) {
      line("long long piece = i / {0};", word(words_.kElements));
      line("const long long e = i - piece * {};", word(words_.kElements));
      for (int l = 0; l < layout_.nested; ++l) {
        if (l + 1 == layout_.nested) {
          line("const long long l{} = piece;", l);
        } else {
          line("const long long l{0} = piece % {1}; piece /= {1};", l, word(words_.nestedSize(l)));
        }
      }
    } else {
      line("const long long e = i;");
    }
    offsets("at", [&](size_t a) {
      std::string sum = fmt::format("row{}", a) + elementOffset(a, "e");
      for (int l = 0; l < layout_.nested; ++l) {
        sum += fmt::format(" + l{} * {}", l, word(words_.nestedStep(a, l)));
      }
      return sum;
    });
    computeVector(work, "k", pass == 0);
    close();
    if (layout_.kept > 0) close();
    for (const size_t r : work.reductions) {
      line("const {0} r{1} = joined{1}(sum{1}, lane, sub);",
           cudaType(kernel_.expression[kernel_.reductions[r].operand].type), r);
    }
  }

  void storeRow() {
    loop::PassWork work;
    for (const loop::Store& store : kernel_.stores) {
      if (store.per_row) work.stores.push_back(&store);
    }
    if (work.stores.empty()) return;
    open("if (lane == 0 && exists)");
    line("const int v = 0;");
    kept_.clear();
    for (size_t a = 0; a < kernel_.accesses.size(); ++a) line("const long long at{0} = row{0};", a);
    const std::vector<bool> needed = loop::neededFor(kernel_, work.roots(kernel_));
    const auto& nodes = kernel_.expression.nodes();
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (!needed[i] || nodes[i].op != ScalarOp::Input) continue;
      const Leaf& leaf = kernel_.leaves[nodes[i].payload];
      if (!isLoadedAhead(leaf)) continue;
      line("const {0} x{1} = *(const {0}*){2};", cudaType(nodes[i].type), i, address(leaf.index));
    }
    one_ = true;
    computeNodes(needed, "");
    for (const loop::Store* store : work.stores) {
      line("*({}*){} = {};", cudaType(kernel_.accesses[store->access].dtype),
           address(store->access), name(store->value));
    }
    close();
  }

  const std::string& name_;
  const bool joint_;
  const Kernel& kernel_;
  const CudaLayout& layout_;
  const CudaWords words_;
  const loop::Schedule schedule_;
  bool one_ = false;         // whether loads are of one element, not of a vector
  const bool pairs_;         // whether neighbours are computed two by two
  std::string suffix_;       // of names of nodes: which of two
  std::string place_ = "v";  // of the element in its vector
  std::set<int32_t> kept_;   // nodes: loads whose values stay in registers
};

}  // namespace

CudaWords::CudaWords(const loop::Kernel& kernel, const CudaLayout& layout)
    : outer(static_cast<size_t>(layout.outer)),
      nested_sizes(2 + outer),
      accesses(nested_sizes + static_cast<size_t>(layout.nested)),
      per_access(2 + outer + static_cast<size_t>(layout.nested)),
      numbers(accesses + kernel.accesses.size() * per_access),
      flag(numbers + kernel.numbers.size()),
      count(flag + (kernel.checks.empty() ? 0 : 2)) {}

std::string cudaKernelText(const std::string& name, const loop::Kernel& kernel,
                           const CudaLayout& layout) {
  return KernelText(name, kernel, layout).run();
}

size_t cudaCallsTogether(const CudaWords& words) {
  // Parameters of a kernel have 4096 bytes.
  constexpr size_t kBytes = 4096, kMost = 32;
  return std::clamp<size_t>(kBytes / (words.count * 8 + 4), 1, kMost);
}

std::string cudaJointKernelText(const std::string& name, const loop::Kernel& kernel,
                                const CudaLayout& layout) {
  return KernelText(name, kernel, layout, true).run();
}

}  // namespace wick::codegen
