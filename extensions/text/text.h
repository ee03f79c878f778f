// The classes and operators of torchtext 0.14, the release that belongs to PyTorch 1.13: what its
// scripted vocabularies and tokenizers call as torch.classes.torchtext.NAME. They are there in each
// program that this library is linked into. Their states in archives have torchtext's form, and
// errors say what torchtext says.
//
// A class is a file. Objects may be used from several threads at a time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/ivalue.h"
#include "core/memory_limit.h"
#include "extensions/extension.h"

namespace wick::text {

void defineVocab(Extension& extension);
void defineVectors(Extension& extension);
void defineRegex(Extension& extension);
void defineGpt2Encoder(Extension& extension);
void defineClipEncoder(Extension& extension);
void defineBertEncoder(Extension& extension);

// The parts of a pickled state, which must be a tuple of `count`.
const std::vector<IValue>& stateParts(const char* class_name, const IValue& state, size_t count);

// The parts of `text` between spaces, without empty ones.
std::vector<std::string> splitAtSpaces(const char* class_name, const std::string& text);

// Texts that a call makes, as many as its memory allows.
class Texts {
 public:
  explicit Texts(const char* class_name) : class_name_(class_name) {}
  // RuntimeError when they exceed a limit; asked from 1 MiB on.
  void push(std::string text);
  std::vector<std::string> take() { return std::move(texts_); }

 private:
  const char* class_name_;
  std::vector<std::string> texts_;
  size_t bytes_ = 0;
};

// What an object holds counts as memory of the program (core/memory_limit.h).
class HeldMemory {
 public:
  HeldMemory() = default;
  HeldMemory(HeldMemory&& other) noexcept : bytes_(std::exchange(other.bytes_, 0)) {}
  HeldMemory& operator=(HeldMemory&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~HeldMemory() { noteMemory(-bytes_); }
  // Before it is taken: RuntimeError when `bytes` more would exceed a limit.
  void add(const char* class_name, size_t bytes);
  // About what a string takes as an element or key of a container.
  static size_t of(const std::string& text) { return text.size() + 64; }
  static size_t of(const std::vector<std::string>& texts);

 private:
  int64_t bytes_ = 0;
};

}  // namespace wick::text
