// Steps as what a CPU tells a CUDA device to run: launches of kernels, calls of cuBLASLt and cuDNN, copies.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "aot/step_text.h"

namespace wick::aot {

class CudaStepWriter : public StepWriter {
 public:
  struct Kernel {
    std::string name;  // of the model's own, and of the function in its code
    std::string text;  // CUDA C, for a namespace of its own
  };

  std::unique_ptr<StepWriter> copy() const override {
    return std::make_unique<CudaStepWriter>(*this);
  }
  void restore(const StepWriter& copy) override {
    const auto& other = static_cast<const CudaStepWriter&>(copy);
    known_ = other.known_;
    computes_numbers_ = other.computes_numbers_;
  }
  std::string includes(size_t primitives) const override;
  std::string functions(size_t primitives) const override;
  std::string tables() const override;
  std::string names() const override;
  std::string primitiveType() const override { return "wick_aot_cuda_primitive"; }
  std::string sizedPrimitive() const override {
    return "    {WICK_AOT_CUDA_SIZED, 0, 0, 0, 0, 0, -1, 0, 0, 0, {0}, {0}, {0},\n"
           "     {0, {0}, {0}, 0}, {0, {0}, {0}, 0}, {0, {0}, {0}, 0}},\n";
  }
  bool alwaysSized() const override { return true; }

  const std::vector<Kernel>& kernels() const { return known_.kernels; }
  const std::vector<std::string>& complaints() const { return known_.complaints; }
  bool multiplies() const { return known_.multiplies; }
  bool convolves() const { return known_.convolves; }
  bool asks() const { return known_.asks; }

 private:
  // What texts share.
  struct Known {
    std::vector<Kernel> kernels;
    std::unordered_map<std::string, size_t> by_text;
    std::vector<std::string> complaints;
    bool multiplies = false, convolves = false, asks = false;
  };

  // The name of the kernel with this text, in which it is called `function`.
  std::string kernel(const std::string& step, const std::string& function, std::string text);
  size_t complaint(const std::string& text);
  // What divides the address for sure.
  int64_t alignment(const Place& place, DType dtype) const;
  std::string word(const Place& place);
  std::string launchText(const std::string& name, unsigned grid, unsigned block,
                         const std::string& words);
  // `last` are further words.
  void writeKernel(const Step& step, const DeviceKernelStep& s, const std::string& last);
  std::string layoutText(const Layout& layout, const Place& place, DType dtype) const;

  std::string copyText(const std::string& to, const std::string& from, size_t bytes) override;
  std::string readText(const std::string& variable, const std::string& type,
                       const Place& place) override;
  std::string writeText(const std::string& variable, const std::string& type,
                        const Place& place) override;
  void write(const Step& step, const KernelStep& s) override;
  void write(const Step& step, const LibraryStep& s) override;
  void write(const Step& step, const FillStep& s) override;
  void write(const Step& step, const FunctionStep& s) override;
  void write(const Step& step, const DeviceKernelStep& s) override;

  Known known_;
};

// NotAhead for steps that it does not write.
void checkCudaStep(const std::string& name, const decltype(Step::what)& what);

}  // namespace wick::aot
