// The steps of programs as C++17 text.
#pragma once

#include <memory>
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
  size_t part = 0;             // of the program
};

// The steps of a program as text. Parts begin behind a SizeStep each, but for the first one.
struct ProgramSteps {
  // A buffer that has a name.
  struct Named {
    uint32_t buffer;
    size_t part, index;  // where it occurs first, and how many of that part do so before
  };
  std::vector<StepText> texts;
  std::vector<std::string> keys;  // of the parts (SizeStep); "" of the first one
  std::vector<Named> buffers;
};
// How many sizes that elements decide are known in a part.
size_t knownSizes(std::string_view key);
// "b3" in the first part, "b1_3" in one that knows one size.
std::string bufferName(size_t known, size_t index);
// The function of a part, before it has its name.
std::string partName(std::string_view key);

// Writes steps, as what the CPU runs or as what a CPU tells a device to run. What several of them share, tables and
// functions, is kept.
class StepWriter {
 public:
  virtual ~StepWriter() = default;
  StepWriter& operator=(const StepWriter&) = delete;

  // Of all steps, and of the copies into results behind them. With `any_size` the texts are the same for many
  // sizes but for numbers: temporary buffers have names, in each part in the order in which they occur.
  // Throws codegen::NoCppText.
  ProgramSteps write(const Program& program, const Plan& plan, bool any_size);

  // What it keeps, to be taken back.
  virtual std::unique_ptr<StepWriter> copy() const = 0;
  virtual void restore(const StepWriter& copy) = 0;

  // ---- what the text of programs has beside steps ----

  // Headers, `primitives` of them being run by a library.
  virtual std::string includes(size_t primitives) const = 0;
  // Functions and tables that the texts use, in front of kernels and behind them.
  virtual std::string functions(size_t primitives) const = 0;
  virtual std::string tables() const = 0;
  // The names that each program knows.
  virtual std::string names() const = 0;
  // The type of a primitive, and one whose description each call brings.
  virtual std::string primitiveType() const = 0;
  virtual std::string sizedPrimitive() const = 0;
  // Whether what was written draws random numbers.
  virtual bool draws() const { return false; }
  // Whether programs of fixed sizes are given sizes, too.
  virtual bool alwaysSized() const { return false; }

 protected:
  StepWriter() = default;
  StepWriter(const StepWriter&) = default;

  // An expression for a place in memory, of elements of this C++ type.
  std::string pointer(const Place& place, const std::string& type);
  // A statement that ends the call with an error.
  static std::string failure(const std::string& message);
  bool isWeight(const Place& p) const;
  int64_t weightsOffset(const Place& p) const;

  virtual std::string copyText(const std::string& to, const std::string& from, size_t bytes) = 0;
  // Statements that declare a variable of this type, with the element at a place, and that write one there.
  virtual std::string readText(const std::string& variable, const std::string& type,
                               const Place& place) = 0;
  virtual std::string writeText(const std::string& variable, const std::string& type,
                                const Place& place) = 0;

  virtual void write(const Step& step, const KernelStep& s) = 0;
  virtual void write(const Step& step, const LibraryStep& s) = 0;
  virtual void write(const Step& step, const FillStep& s) = 0;
  virtual void write(const Step& step, const FunctionStep& s) = 0;
  [[noreturn]] static void refuse(const Step& step);
  // What not all devices compute.
  virtual void write(const Step& step, const SmallProductStep&) { refuse(step); }
  virtual void write(const Step& step, const PlainProductStep&) { refuse(step); }
  virtual void write(const Step& step, const ConvolutionStep&) { refuse(step); }
  virtual void write(const Step& step, const PoolStep&) { refuse(step); }
  virtual void write(const Step& step, const DeviceKernelStep&) { refuse(step); }

  const Program* program_ = nullptr;  // that is written now
  const Plan* plan_ = nullptr;
  bool any_size_ = false;
  StepText now_;
  bool computes_numbers_ = false;  // whether what was written needs wick_aot_numbers.h

 private:
  void write(const Step& step, const BranchStep& s);
  void write(const Step& step, const LoopStep& s);
  void write(const Step& step, const WindowStep& s);
  void write(const Step& step, const NumberStep& s);
  void write(const Step& step, const OtherwiseStep& s);
  void write(const Step& step, const EndStep& s);
  void write(const Step& step, const RaiseStep& s);
  void write(const Step& step, const SwapStep& s);
  void write(const Step& step, const SizeStep& s);
  void write(const Step& step, const ResultSizesStep& s);
  // The number of a variable that holds an address. No two of one function have the same, also where one buffer has
  // several, one after the other.
  size_t newVariable() { return open_.back().variables_begun++; }
  // Variables for the buffers that a loop exchanges.
  std::string swappedText(const LoopStep& s);

  std::unordered_map<uint32_t, std::string> names_;      // of temporary buffers
  std::unordered_map<uint32_t, std::string> variables_;  // that hold addresses of buffers
  // The parts around the step that is written.
  struct OpenPart {
    size_t part = 0, known = 0, buffers = 0;                // that have names
    int level = 0;                                          // of blocks around its beginning
    size_t variables_begun = 0;                             // names of variables are taken once
    std::unordered_map<uint32_t, std::string> variables{};  // in front of it
  };
  std::vector<OpenPart> open_;
  ProgramSteps steps_;
  size_t loops_ = 0;  // so many numbers of variables are taken
};

// For the CPU. Sums are added in the order of registers of so many bits.
std::unique_ptr<StepWriter> cpuStepWriter(unsigned vector_bits);

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

// Functions that the texts use.
extern const char* const kAddressText;
// The C++ type of elements in memory, where booleans are bytes.
std::string memoryType(DType dtype);
// Numbers with commas between them; "0" when there are none.
std::string listOf(IntSpan values);
// A literal of C.
std::string quoted(std::string_view text);

}  // namespace wick::aot
