#include "core/error.h"

#include "core/source_origin.h"

namespace wick {

Error::~Error() = default;
CompileError::~CompileError() = default;
RuntimeError::~RuntimeError() = default;
LoadError::~LoadError() = default;
UsageError::~UsageError() = default;
InternalError::~InternalError() = default;

namespace {

// A program chooses what it raises; each call that the error leaves copies it.
constexpr size_t kMaxMessage = size_t{64} << 10;

std::string bounded(std::string message) {
  if (message.size() > kMaxMessage) {
    message.resize(kMaxMessage);
    message += "...";
  }
  return message;
}

// what() ends at the first zero byte, so that the text would.
std::string withoutZeros(std::string text) {
  for (size_t at = 0; (at = text.find('\0', at)) != std::string::npos;) {
    text.replace(at, 1, "\\x00");
  }
  return text;
}

}  // namespace

CompileError::CompileError(SourceRange range, const std::string& message)
    : Error(message), range_(std::move(range)), brief_(message) {
  if (range_.valid()) message_ = brief_ + ":\n" + range_.highlight();
}

void CompileError::append(const CompileError& other) {
  if (!message_.ends_with('\n')) message_ += '\n';
  message_ += other.message_;
}

RuntimeError::RuntimeError(std::string message, std::string class_name)
    : Error(""), brief_(bounded(std::move(message))), class_name_(bounded(std::move(class_name))) {
  rebuild();
}

void RuntimeError::addFrame(Frame frame) {
  frames_.push_back(std::move(frame));
  rebuild();
}

void RuntimeError::rebuild() {
  message_.clear();
  if (!frames_.empty()) {
    message_ = "Traceback of TorchScript (most recent call last):\n";
    for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
      message_ += fmt::format("in {}\n{}", frame->function, userRange(frame->range).highlight());
    }
  }
  message_ += class_name_ + ": " + withoutZeros(brief_);
}

InternalError::InternalError(const char* file, int line, const std::string& message)
    : Error(fmt::format("internal error (a bug in Wick) at {}:{}: {}", file, line, message)) {}

}  // namespace wick
