// A row is walked once for each pass of the kernel's schedule. What does not vary within a row is
// loaded in front of the passes. A pass that reduces adds into an array of lanes.
#include "codegen/cpp/kernel_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "codegen/loop/emission.h"
#include "codegen/loop/lane_order.h"
#include "codegen/text/lines.h"

namespace wick::codegen {

namespace {

using loop::Kernel;
using loop::Leaf;
using loop::ReduceOp;

constexpr int64_t kTile = 64;  // rows and elements of a block

// Memory may hold any byte where a boolean is.
std::string memoryType(DType type) {
  return type == DType::Bool ? "uint8_t" : cppType(type);
}

class KernelWriter : Lines {
 public:
  KernelWriter(const std::string& name, const Kernel& kernel, const CppWalk& walk,
               const std::vector<uint64_t>& numbers, unsigned vector_bits)
      : name_(name),
        kernel_(kernel),
        walk_(walk),
        numbers_(numbers),
        schedule_(loop::makeSchedule(kernel)),
        lanes_(static_cast<int64_t>(loop::lanesOf(kernel, vector_bits))) {
    for (const loop::Schedule::Waiting& w : schedule_.waiting) {
      const uint32_t access = kernel_.stores[w.store].access;
      const int64_t step = laneStep(access), item = itemOf(access);
      if (step == item || step == 0) waiting_.emplace(w.value.id, access);
    }
  }

  std::string run() {
    const bool checks = !kernel_.checks.empty();
    if (checks) line("bool good = true;");
    outerLoops();
    if (checks) line("return good;");
    std::string parameters;
    const size_t first_store = kernel_.accesses.size() - kernel_.stores.size();
    for (size_t a = 0; a < kernel_.accesses.size(); ++a) {
      const loop::Access& access = kernel_.accesses[a];
      if (access.isIndex()) continue;
      const bool used = text_.find(baseName(a) + "[") != std::string::npos;
      parameters += fmt::format("{}{}{}{}* {}", parameters.empty() ? "" : ", ",
                                used ? "" : "[[maybe_unused]] ", a < first_store ? "const " : "",
                                memoryType(access.dtype), baseName(a));
    }
    return fmt::format("{} {}({}) {{\n{}}}\n", checks ? "bool" : "void", name_, parameters, text_);
  }

 private:
  using Values = std::map<int32_t, std::string>;

  void openLoop(const std::string& i, const std::string& begin, const std::string& end,
                int64_t step = 1) {
    const std::string next = step == 1 ? "++" + i : fmt::format("{} += {}", i, step);
    open(fmt::format("for (int64_t {} = {}; {} < {}; {})", i, begin, i, end, next));
  }
  void openLoop(const std::string& i, int64_t begin, int64_t end, int64_t step = 1) {
    openLoop(i, fmt::format("{}", begin), fmt::format("{}", end), step);
  }

  int64_t itemOf(size_t a) const {
    const loop::Access& access = kernel_.accesses[a];
    return access.isIndex() ? 1 : static_cast<int64_t>(itemSize(access.dtype));
  }
  // The step of lanes, in bytes.
  int64_t laneStep(size_t a) const {
    return walk_.across_rows ? walk_.outer[0].steps[a] : walk_.row.steps[a];
  }
  std::string baseName(size_t a) const {
    const size_t first_store = kernel_.accesses.size() - kernel_.stores.size();
    return a < first_store ? fmt::format("x{}", a) : fmt::format("y{}", a - first_store);
  }
  // " + r1 * 12" for a loop's variable; nothing where it does not move the access.
  std::string moved(const CppLoop& loop, size_t a, const std::string& variable) const {
    const int64_t step = loop.steps[a] / itemOf(a);
    if (step == 0 || (loop.size == 1 && !walk_.any_size)) return "";
    return step == 1 && !walk_.any_size ? fmt::format(" + {}", variable)
                                        : fmt::format(" + {} * {}", variable, step);
  }

  void beginParallel() {
    if (walk_.any_size) {
      line("WICK_PARALLEL_IF({})", walk_.parallel ? 1 : 0);
    } else {
      line("WICK_PARALLEL");
    }
  }

  // Loops around rows. Innermost the offsets of accesses are known.
  void outerLoops() {
    size_t d = walk_.outer.size();
    bool parallel = (walk_.parallel || walk_.any_size) && kernel_.checks.empty();
    const size_t last = walk_.across_rows || walk_.tiled ? 1 : 0;
    size_t opened = 0;
    for (; d-- > last;) {
      if (walk_.outer[d].size == 1 && !walk_.any_size) continue;
      if (std::exchange(parallel, false)) beginParallel();
      openLoop(fmt::format("r{}", d), 0, walk_.outer[d].size);
      ++opened;
    }
    const CppLoop none{1, std::vector<int64_t>(kernel_.accesses.size(), 0)};
    const CppLoop& rows = walk_.outer.empty() ? none : walk_.outer[0];
    for (size_t a = 0; a < kernel_.accesses.size(); ++a) {
      std::string offset;
      for (size_t o = walk_.outer.size(); o-- > last;) {
        offset += moved(walk_.outer[o], a, fmt::format("r{}", o));
      }
      offsets_.push_back(std::move(offset));
    }
    if (walk_.across_rows) {
      if (parallel) beginParallel();
      openLoop("r0", 0, rows.size, lanes_);
      line("const int64_t lanes = {1} - r0 < {0} ? {1} - r0 : {0};", lanes_, rows.size);
      row();
      close();
    } else if (walk_.tiled) {
      tiles(rows, parallel);
    } else {
      spread_ = parallel && kernel_.reductions.empty();
      row();
    }
    for (; opened > 0; --opened) close();
  }

  void tiles(const CppLoop& rows, bool parallel) {
    if (parallel) beginParallel();
    openLoop("tile", 0, rows.size, kTile);
    openLoop("begin", 0, walk_.row.size, kTile);
    openLoop("r0", "tile", fmt::format("(tile + {0} < {1} ? tile + {0} : {1})", kTile, rows.size));
    for (size_t a = 0; a < kernel_.accesses.size(); ++a) offsets_[a] += moved(rows, a, "r0");
    row();
    for (int i = 0; i < 3; ++i) close();
  }

  // The element of an access at element `i` of a row: "[…]" of its base. Of lanes across rows that of
  // row r0 + l.
  std::string indexOf(size_t a, bool of_row) const {
    std::string index = offsets_[a];
    if (walk_.across_rows) index += moved(walk_.outer[0], a, "(r0 + l)");
    if (!of_row) {
      for (size_t p = walk_.pieces.size(); p-- > 0;) {
        index += moved(walk_.pieces[p], a, fmt::format("q{}", p));
      }
      index += moved(walk_.row, a, "i");
    }
    return index.empty() ? "0" : index.substr(3);
  }
  std::string elementOf(size_t a, bool of_row) const {
    return fmt::format("{}[{}]", baseName(a), indexOf(a, of_row));
  }
  std::string loadText(size_t a, const std::string& element) const {
    return kernel_.accesses[a].dtype == DType::Bool ? fmt::format("({} != 0)", element) : element;
  }

  // Whether the access is at the same element for a whole row.
  bool isOfRow(size_t a) const {
    if (walk_.across_rows) return false;
    if (walk_.row.steps[a] != 0 && (walk_.row.size > 1 || walk_.any_size)) return false;
    return std::ranges::all_of(walk_.pieces, [&](const CppLoop& p) { return p.steps[a] == 0; });
  }

  // What is the same for a whole row.
  void loadRowValues(Values& values) {
    for (size_t i = 0; i < kernel_.expression.nodes().size(); ++i) {
      const ScalarNode& node = kernel_.expression.nodes()[i];
      const auto id = static_cast<int32_t>(i);
      if (node.op != ScalarOp::Input || values.count(id) != 0) continue;
      const Leaf& leaf = kernel_.leaves[node.payload];
      if (leaf.kind == Leaf::Kind::Number) {
        values[id] = cppNumber(numbers_[leaf.index], kernel_.numbers[leaf.index].type);
      } else if (leaf.kind == Leaf::Kind::Count) {
        int64_t points = walk_.row.size;
        for (const CppLoop& p : walk_.pieces) points *= p.size;
        values[id] = cppConvert(fmt::format("int64_t({})", points), DType::Long, leaf.type);
      } else if (leaf.kind == Leaf::Kind::Load && !leaf.offset.valid() && !leaf.mask.valid() &&
                 isOfRow(leaf.index)) {
        define(values, id, loadText(leaf.index, elementOf(leaf.index, true)));
      }
    }
  }

  void define(Values& values, int32_t id, const std::string& text) {
    line("const {} v{} = {};", cppType(kernel_.expression.nodes()[static_cast<size_t>(id)].type),
         id, text);
    values[id] = fmt::format("v{}", id);
  }

  void row() {
    Values values;
    if (!walk_.across_rows) loadRowValues(values);
    for (pass_ = 0; pass_ < schedule_.passes; ++pass_) onePass(values);
    const bool stores =
        std::ranges::any_of(kernel_.stores, [](const loop::Store& s) { return s.per_row; });
    if (!stores) return;
    if (walk_.across_rows) {
      line("WICK_VECTORIZE");
      openLoop("l", "0", "lanes");
    }
    Values last = values;
    if (walk_.across_rows) loadRowValues(last);
    std::vector<std::pair<uint32_t, std::string>> stored;
    for (const loop::Store& store : kernel_.stores) {
      if (store.per_row) stored.emplace_back(store.access, valueOf(store.value, last, true));
    }
    for (const auto& [access, v] : stored) line("{} = {};", elementOf(access, true), v);
    if (walk_.across_rows) close();
  }

  // What happens to element i, in lane `lane` of the sums.
  void element(const loop::PassWork& pass, const Values& row_values) {
    Values values = row_values;
    if (walk_.across_rows) loadRowValues(values);
    for (ScalarExpr check : pass.checks) {
      line("good = good && {};", valueOf(check, values, false));
    }
    std::vector<std::string> added;
    for (size_t r : pass.reductions) {
      added.push_back(valueOf(kernel_.reductions[r].operand, values, false));
    }
    // All are computed before the first is stored: it may lie where another is computed from.
    std::vector<std::pair<uint32_t, std::string>> stored;
    for (const auto& [node, access] : waiting_) {
      if (schedule_.passOf({node}) != pass_) continue;
      stored.emplace_back(access, valueOf({node}, values, false));
    }
    for (const loop::Store* store : pass.stores) {
      stored.emplace_back(store->access, valueOf(store->value, values, false));
    }
    for (size_t k = 0; k < added.size(); ++k) {
      const size_t r = pass.reductions[k];
      const std::string sum = fmt::format("s{}[lane]", r);
      line("{} = {};", sum, combined(r, sum, added[k]));
    }
    for (const auto& [access, v] : stored) line("{} = {};", elementOf(access, false), v);
  }

  void onePass(Values& values) {
    const loop::PassWork pass = loop::workOf(kernel_, schedule_, pass_);
    if (pass.empty()) return;
    const int64_t chains = loop::chainsOf(kernel_, schedule_, pass_, pass.reductions.size());
    for (size_t r : pass.reductions) {
      line("{} s{}[{}];", sumType(r), r, lanes_ * chains);
      line("for ({0}& s : s{1}) s = {2};", sumType(r), r, identity(r));
    }
    if (pass.reductions.empty() && !walk_.across_rows) {
      plainPass(pass, values);
    } else if (walk_.across_rows) {
      passAcross(pass, values, chains);
    } else {
      passWithin(pass, values, chains);
    }
    for (size_t r : pass.reductions) finish(r, chains);
    for (size_t i = 0; i < kernel_.expression.nodes().size(); ++i) {
      const ScalarNode& node = kernel_.expression.nodes()[i];
      if (node.op != ScalarOp::Input) continue;
      const Leaf& leaf = kernel_.leaves[node.payload];
      if (leaf.kind != Leaf::Kind::Reduction ||
          std::ranges::find(pass.reductions, leaf.index) == pass.reductions.end()) {
        continue;
      }
      if (walk_.across_rows) {
        values[static_cast<int32_t>(i)] = fmt::format("s{}[l]", leaf.index);
      } else {
        define(values, static_cast<int32_t>(i), fmt::format("s{}[0]", leaf.index));
      }
    }
  }

  void openPieces() {
    for (size_t p = walk_.pieces.size(); p-- > 0;) {
      openLoop(fmt::format("q{}", p), 0, walk_.pieces[p].size);
    }
  }
  void closePieces() {
    for (size_t p = 0; p < walk_.pieces.size(); ++p) close();
  }

  // Each element by itself.
  void plainPass(const loop::PassWork& pass, const Values& values) {
    openPieces();
    const int64_t size = walk_.row.size;
    if (pass.checks.empty()) {
      if (!spread_ || !walk_.pieces.empty()) {
        line("WICK_VECTORIZE");
      } else if (walk_.any_size) {
        line("WICK_PARALLEL_VECTORIZE_IF({})", walk_.parallel ? 1 : 0);
      } else {
        line("WICK_PARALLEL_VECTORIZE");
      }
    }
    if (walk_.tiled) {
      openLoop("i", "begin", fmt::format("(begin + {0} < {1} ? begin + {0} : {1})", kTile, size));
    } else {
      openLoop("i", 0, size);
    }
    element(pass, values);
    close();
    closePieces();
  }

  // Element i goes to lane i % lanes.
  void passWithin(const loop::PassWork& pass, const Values& values, int64_t chains) {
    const int64_t size = walk_.row.size, whole = lanes_ * chains;
    const int64_t some = size / whole * whole, full = size / lanes_ * lanes_;
    openPieces();
    // Over no elements nothing is added.
    open(
        fmt::format("[[maybe_unused]] const auto add{} = [&]([[maybe_unused]] const int64_t i, "
                    "const int64_t lane)",
                    pass_));
    element(pass, values);
    close(";");
    if (walk_.any_size) {
      const std::string some_text = fmt::format("{} / {} * {}", size, whole, whole);
      const std::string full_text = fmt::format("{} / {} * {}", size, lanes_, lanes_);
      const auto vectors = [&](const std::string& begin, const std::string& end, int64_t width) {
        openLoop("i", begin, end, width);
        line("WICK_VECTORIZE");
        line("for (int64_t l = 0; l < {}; ++l) add{}(i + l, l);", width, pass_);
        close();
      };
      vectors("0", some_text, whole);
      vectors(some_text, full_text, lanes_);
      line("for (int64_t l = 0; l < {} % {}; ++l) add{}({} + l, l);", size, lanes_, pass_,
           full_text);
      closePieces();
      return;
    }
    const auto vectors = [&](int64_t begin, int64_t end, int64_t width) {
      if (begin == end) return;
      if (end - begin == width) {
        line("WICK_VECTORIZE");
        line("for (int64_t l = 0; l < {}; ++l) add{}({}l, l);", width, pass_,
             begin == 0 ? "" : fmt::format("{} + ", begin));
        return;
      }
      openLoop("i", begin, end, width);
      line("WICK_VECTORIZE");
      line("for (int64_t l = 0; l < {}; ++l) add{}(i + l, l);", width, pass_);
      close();
    };
    vectors(0, some, whole);
    vectors(some, full, lanes_);
    vectors(full, size, size - full);
    closePieces();
  }

  // Lane l is row r0 + l.
  void passAcross(const loop::PassWork& pass, const Values& values, int64_t chains) {
    const int64_t size = walk_.row.size, some = size / chains * chains;
    openPieces();
    open(
        fmt::format("[[maybe_unused]] const auto add{} = [&]([[maybe_unused]] const int64_t i, "
                    "[[maybe_unused]] "
                    "const int64_t lane, const int64_t l)",
                    pass_));
    element(pass, values);
    close(";");
    const auto one = [&](const std::string& i, int64_t chain) {
      line("WICK_VECTORIZE");
      line("for (int64_t l = 0; l < lanes; ++l) add{}({}, {}l, l);", pass_, i,
           chain == 0 ? "" : fmt::format("{} + ", chain * lanes_));
    };
    const std::string some_text = walk_.any_size ? fmt::format("{} / {} * {}", size, chains, chains)
                                                 : fmt::format("{}", some);
    if (some > 0 || walk_.any_size) {
      openLoop("i", "0", some_text, chains);
      for (int64_t c = 0; c < chains; ++c) one(c == 0 ? "i" : fmt::format("i + {}", c), c);
      close();
    }
    if (walk_.any_size) {
      openLoop("i", some_text, fmt::format("{}", size));
      one("i", 0);
      close();
    } else {
      for (int64_t i = some; i < size; ++i) one(fmt::format("{}", i), 0);
    }
    closePieces();
  }

  // Adds the chains, and unless lanes are rows the lanes: halves, quarters, and so on.
  void finish(size_t r, int64_t chains) {
    const auto fold = [&](int64_t width, const std::string& other) {
      line("for (int64_t l = 0; l < {}; ++l) s{}[l] = {};", width, r,
           combined(r, fmt::format("s{}[l]", r), other));
    };
    for (int64_t c = 1; c < chains; ++c) {
      fold(lanes_, fmt::format("s{}[{} + l]", r, c * lanes_));
    }
    if (walk_.across_rows) return;
    for (int64_t width = lanes_ / 2; width > 0; width /= 2) {
      fold(width, fmt::format("s{}[{} + l]", r, width));
    }
  }

  DType typeOf(size_t r) const { return kernel_.expression[kernel_.reductions[r].operand].type; }
  std::string sumType(size_t r) const { return cppType(typeOf(r)); }
  std::string identity(size_t r) const {
    return cppText(loop::identityNode(kernel_.reductions[r].op, typeOf(r)), {}, {});
  }

  std::string combined(size_t r, const std::string& a, const std::string& b) const {
    const DType type = typeOf(r);
    const std::string nan = isFloating(type) ? fmt::format("{0} != {0} || ", a) : "";
    switch (kernel_.reductions[r].op) {
      case ReduceOp::Min:
        return fmt::format("({0}{1} < {2} ? {1} : {2})", nan, a, b);
      case ReduceOp::Max:
        return fmt::format("({0}{2} < {1} ? {1} : {2})", nan, a, b);
      case ReduceOp::Any:
      case ReduceOp::All: {
        const char* sign = kernel_.reductions[r].op == ReduceOp::Any ? "||" : "&&";
        if (type == DType::Bool) return fmt::format("({} {} {})", a, sign, b);
        const char* bits = kernel_.reductions[r].op == ReduceOp::Any ? "|" : "&";
        return fmt::format("static_cast<{}>({} {} {})", cppType(type), a, bits, b);
      }
      default: {
        ScalarNode node;
        node.op = kernel_.reductions[r].op == ReduceOp::Prod ? ScalarOp::Mul : ScalarOp::Add;
        node.type = type;
        const std::string operands[] = {a, b};
        const DType types[] = {type, type};
        return cppText(node, operands, types);
      }
    }
  }

  // The value of a node for element i of the row; `values` has what is known already.
  std::string valueOf(ScalarExpr e, Values& values, bool of_row) {
    const auto waits = [&](ScalarExpr node) {
      const auto it = waiting_.find(node.id);
      if (of_row || it == waiting_.end() || !schedule_.waitingFor(node, pass_)) return false;
      define(values, node.id, loadText(it->second, elementOf(it->second, false)));
      return true;
    };
    loop::addValue(
        values, kernel_, e, waits, [&](ScalarExpr id, std::span<const ScalarExpr> operands) {
          const ScalarNode& node = kernel_.expression[id];
          if (node.op == ScalarOp::Input) {
            return define(values, id.id, leafText(kernel_.leaves[node.payload], values, of_row));
          }
          std::vector<std::string> in;
          std::vector<DType> types;
          for (const ScalarExpr operand : operands) {
            in.push_back(values.at(operand.id));
            types.push_back(kernel_.expression[operand].type);
          }
          const std::string text = cppText(node, in, types);
          if (node.op == ScalarOp::Constant) {
            values[id.id] = text;
          } else {
            define(values, id.id, text);
          }
        });
    return values[e.id];
  }

  std::string leafText(const Leaf& leaf, const Values& values, bool of_row) const {
    if (leaf.kind == Leaf::Kind::Index) {
      return fmt::format("static_cast<{}>({})", cppType(leaf.type), indexOf(leaf.index, of_row));
    }
    if (leaf.kind != Leaf::Kind::Load) throw NoCppText("a value that no earlier pass computed");
    std::string element = elementOf(leaf.index, of_row);
    const DType type = kernel_.accesses[leaf.index].dtype;
    if (leaf.offset.valid()) {
      element = fmt::format("*reinterpret_cast<const {}*>(reinterpret_cast<const char*>(&{}) + {})",
                            memoryType(type), element, values.at(leaf.offset.id));
    }
    std::string value = loadText(leaf.index, element);
    if (!leaf.mask.valid()) return value;
    return fmt::format("({} ? {} : {})", values.at(leaf.mask.id), value, cppNumber(0, type));
  }

  const std::string& name_;
  const Kernel& kernel_;
  const CppWalk& walk_;
  const std::vector<uint64_t>& numbers_;
  const loop::Schedule schedule_;
  const int64_t lanes_;
  std::map<int32_t, uint32_t> waiting_;  // by node: the access in whose memory it waits
  std::vector<std::string> offsets_;     // of accesses, within loops around rows
  bool spread_ = false;                  // whether the elements of the row are shared by threads
  int pass_ = 0;
};

}  // namespace

std::string cppKernelText(const std::string& name, const loop::Kernel& kernel, const CppWalk& walk,
                          const std::vector<uint64_t>& numbers, unsigned vector_bits) {
  return KernelWriter(name, kernel, walk, numbers, vector_bits).run();
}

}  // namespace wick::codegen
