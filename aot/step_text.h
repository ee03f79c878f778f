// The steps of programs as C++17 text.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "aot/plan.h"
#include "aot/program.h"

namespace wick::aot {

// What stands in the texts for the name of the kernel, and for the number of the primitive.
inline constexpr std::string_view kKernelName = "KERNEL(", kPrimitiveNumber = "PRIMITIVE";

struct StepText {
  const Step* step = nullptr;  // null for copies into results
  std::string kernel;          // the definition of the function that is called, or ""
  std::string call;            // statements
  bool primitive = false;      // whether oneDNN computes it
  int closes = 0, opens = 0;   // blocks, in front of the call and with it
  std::string description;     // of the primitive, an entry of a table; "" when the call has it
};

// Writes steps. What several of them share, tables and functions, is kept.
class StepWriter {
 public:
  // Sums are added in the order of registers of so many bits.
  explicit StepWriter(unsigned vector_bits) : vector_bits_(vector_bits) {}

  // Of all steps, and of the copies into results behind them. With `any_size` the texts are the same for many
  // sizes but for numbers: temporary buffers are called b0, b1, … in the order in which they occur, and
  // `buffers` tells which those are. Throws codegen::NoCppText.
  std::vector<StepText> write(const Program& program, const Plan& plan, bool any_size,
                              std::vector<uint32_t>& buffers);

  // Functions and tables that the texts use.
  const std::vector<std::string>& functions() const { return functions_; }
  const std::string& tables() const { return tables_; }
  bool convolves() const { return convolves_; }
  bool computesNumbers() const { return computes_numbers_; }
  bool movesElements() const { return moves_elements_; }

 private:
  std::string pointer(const Place& place, const std::string& type);
  // A statement that ends the call with an error.
  static std::string failure(const std::string& message);
  bool isWeight(const Place& p) const;
  int64_t weightsOffset(const Place& p) const;
  std::string table(const std::vector<int64_t>& numbers);
  std::string axes(const PoolStep& s);

  void write(const Step& step, const KernelStep& s);
  void write(const Step& step, const SmallProductStep& s);
  void write(const Step& step, const PlainProductStep& s);
  void write(const Step& step, const LibraryStep& s);
  void write(const Step& step, const ConvolutionStep& s);
  void write(const Step& step, const PoolStep& s);
  void write(const Step& step, const FillStep& s);
  void write(const Step& step, const BranchStep& s);
  void write(const Step& step, const OtherwiseStep& s);
  void write(const Step& step, const EndStep& s);
  void write(const Step& step, const RaiseStep& s);
  void write(const Step& step, const LoopStep& s);
  void write(const Step& step, const SwapStep& s);
  void write(const Step& step, const WindowStep& s);
  void write(const Step& step, const NumberStep& s);
  void write(const Step& step, const FunctionStep& s);

  unsigned vector_bits_;
  const Program* program_ = nullptr;  // that is written now
  const Plan* plan_ = nullptr;
  bool any_size_ = false;
  StepText now_;
  std::unordered_map<uint32_t, size_t> names_;  // of temporary buffers
  std::vector<uint32_t>* buffers_ = nullptr;
  std::unordered_map<uint32_t, std::string> variables_;  // that hold addresses of buffers
  size_t loops_ = 0;                                     // so many are begun
  std::set<std::string> defined_;
  std::vector<std::string> functions_;
  // By text.
  std::map<std::string, std::string> table_names_, axes_names_, convolution_names_;
  std::string tables_;
  bool convolves_ = false, computes_numbers_ = false, moves_elements_ = false;
};

// The text of a block of statements, from texts of steps in order: each lies as deep as the blocks around it.
class IndentedText {
 public:
  // `head` is a comment in front of the call.
  void add(int closes, int opens, const std::string& head, const std::string& call);
  const std::string& text() const { return text_; }

 private:
  size_t depth_ = 0;
  std::string text_;
};

// Numbers with commas between them; "0" when there are none.
std::string listOf(IntSpan values);
// A literal of C.
std::string quoted(std::string_view text);

}  // namespace wick::aot
