#include "runtime/interpreter/code.h"

#include <fmt/format.h>

#include "core/source_origin.h"
#include "ir/depth.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/fusion/fusion_site.h"
#include "runtime/interpreter/lowering.h"
#include "runtime/interpreter/register_allocation.h"

namespace wick {
namespace {

struct OpCodeInfo {
  std::string_view name;
  std::string_view format;
};
constexpr OpCodeInfo kOpCodes[] = {
#define WICK_INSTRUCTION(name, format, effect) {#name, format},
    WICK_FORALL_INSTRUCTIONS(WICK_INSTRUCTION)
#undef WICK_INSTRUCTION
};

std::string shortText(const IValue& value) {
  if (value.isTensor()) return "<Tensor>";
  std::string text = value.shortRepr(40);
  return text.size() <= 40 ? text : text.substr(0, 37) + "...";
}

}  // namespace

uint16_t extraFor(const Type& type) {
  switch (type.kind()) {
    case TypeKind::Int:
      return static_cast<uint16_t>(IValue::Tag::Int) + 1;
    case TypeKind::Float:
      return static_cast<uint16_t>(IValue::Tag::Double) + 1;
    case TypeKind::Bool:
      return static_cast<uint16_t>(IValue::Tag::Bool) + 1;
    default:
      return 0;
  }
}

std::string_view opCodeName(OpCode op) {
  return kOpCodes[static_cast<size_t>(op)].name;
}
std::string_view opCodeFormat(OpCode op) {
  return kOpCodes[static_cast<size_t>(op)].format;
}

MethodSite::~MethodSite() {
  for (Entry* entry = last.load(); entry;) {
    Entry* older = entry->older;
    delete entry;
    entry = older;
  }
}

std::shared_ptr<const Code> Code::build(std::shared_ptr<const Graph> graph, std::string name,
                                        std::shared_ptr<Speculation> speculation) {
  std::shared_ptr<Code> code(new Code());
  code->name_ = std::move(name);
  code->graph_ = std::move(graph);
  code->speculation_ = std::move(speculation);
  withStackFor(*code->graph_, [&] { RegisterAllocation(Lowering(*code).run(), *code).run(); });
  return code;
}

void Code::pinConstants() const {
  for (const IValue& constant : constants_) {
    if (constant.isTensor()) constant.pin();
  }
}

Code::~Code() {
  if (!threads_.several()) return;
  for (const IValue& constant : constants_) {
    if (constant.isTensor()) constant.unpin();
  }
}

void Code::setNative(std::unique_ptr<const NativeCode> native) const {
  WICK_ASSERT(!owned_native_, "{} has machine code already", name_);
  owned_native_ = std::move(native);
  native_.store(owned_native_.get(), std::memory_order_release);
}

std::vector<RuntimeError::Frame> Code::framesAt(size_t instruction) const {
  const Node* node = nodes_[instruction];
  if (!node) return {{name_, {}}};
  std::vector<RuntimeError::Frame> frames;
  const auto add = [&](const std::string& function, const SourceRange& range) {
    if (!isInForward(range)) frames.push_back({function, range});
  };
  SourceRange range = node->range();
  for (const InlinedCall* call = node->inlinedFrom().get(); call; call = call->caller.get()) {
    add(call->function, range);
    range = call->call_site;
  }
  add(name_, range);
  return frames;
}

std::string Code::str() const {
  std::string text =
      fmt::format("{}: {} arguments, {} object and {} scalar registers\n", name_, num_inputs_,
                  num_object_registers_, num_registers_ - num_object_registers_);
  auto list = [&](uint32_t offset, bool destinations) {
    std::string out = "[";
    for (uint32_t i = 1; i <= operands_[offset]; ++i) {
      uint32_t entry = operands_[offset + i];
      if (i > 1) out += ", ";
      if (destinations) {
        out +=
            operandIndex(entry) == kNoDestination ? "_" : fmt::format("r{}", operandIndex(entry));
      } else if (operandKind(entry) == OperandKind::Constant) {
        out += shortText(constants_[operandIndex(entry)]);
      } else {
        const OperandKind kind = operandKind(entry);
        out += fmt::format("r{}{}", operandIndex(entry),
                           kind == OperandKind::Move      ? "!"
                           : kind == OperandKind::Yielded ? "?"
                           : kind == OperandKind::Held    ? "+"
                                                          : "");
      }
    }
    return out + "]";
  };
  for (size_t i = 0; i < instructions_.size(); ++i) {
    const Instruction& instruction = instructions_[i];
    std::string_view format = opCodeFormat(instruction.op);
    text += fmt::format("{:4} {:<20}", i, opCodeName(instruction.op));
    uint32_t fields[] = {instruction.a, instruction.b, instruction.c};
    for (size_t f = 0; f < 3; ++f) {
      switch (format[f]) {
        case 'd':
          text += fields[f] == kNoIndex ? " _" : fmt::format(" r{}", fields[f]);
          break;
        case 'u':
        case 'x':
          text += fmt::format(" r{}", fields[f]);
          break;
        case 'o':
        case 'D':
          text += " " + list(fields[f], format[f] == 'D');
          break;
        case 'j':
          text += fmt::format(" ->{}", fields[f]);
          break;
        case 'n':
          text += fmt::format(" {}", static_cast<int32_t>(fields[f]));
          break;
        default:
          break;
      }
    }
    switch (instruction.op) {
      case OpCode::OP:
      case OpCode::OP_MULTI:
        text += fmt::format("  # {}", operator_sites_[instruction.a].op->schema().name());
        break;
      case OpCode::CALL:
        text += fmt::format("  # {}", function_sites_[instruction.a]->function->qualifiedName());
        break;
      case OpCode::CALL_VIRTUAL:
        text += fmt::format("  # {}", method_sites_[instruction.a]->name);
        break;
      case OpCode::LOADK:
      case OpCode::SLOADK:
        text += fmt::format("  # {}", shortText(constants_[instruction.b]));
        break;
      default:
        break;
    }
    text += '\n';
  }
  for (const auto& fork : fork_sites_) {
    text += "fork of " + GraphExecutor::of(fork->function).code().str();
  }
  return text;
}

}  // namespace wick
