#include "tests/fuzz/random_program.h"

namespace wick {

const char* RandomProgram::nameOf(Type type) {
  static constexpr const char* kNames[] = {
      "int",           "float",          "bool",
      "str",           "Tensor",         "List[int]",
      "List[float]",   "Dict[str, int]", "Tuple[int, float]",
      "Optional[int]",
  };
  return kNames[type];
}

std::string RandomProgram::variable(Type type) {
  std::vector<const std::string*> fitting;
  for (const Variable& v : variables_) {
    if (v.type == type) fitting.push_back(&v.name);
  }
  return fitting.empty() ? "" : *fitting[below(fitting.size())];
}

std::string RandomProgram::literal(Type type) {
  switch (type) {
    case kInt:
      return pick({"0", "1", "2", "-1", "3", "7", "255", "1000003", "9223372036854775807", "0x7f"});
    case kFloat:
      return pick({"0.0", "1.5", "-2.25", "1e10", "1e-300", "1e308", "float('inf')", "float('nan')",
                   "0.1"});
    case kBool:
      return pick({"True", "False"});
    case kStr:
      return pick({"''", "'a'", "'key'", "\"x y\"", "'\\n'", "'\\u00e9'", "'%d'", "'{}'"});
    case kTensor:
      return pick({"torch.ones([2, 3])", "torch.zeros([3])", "torch.arange(4)",
                   "torch.tensor([1.0, 2.0])", "torch.tensor(3)", "torch.empty([0, 2])"});
    case kIntList:
      return pick({"[1, 2, 3]", "[5]", "torch.jit.annotate(List[int], [])"});
    case kFloatList:
      return pick({"[1.0, 2.5]", "[0.5]", "torch.jit.annotate(List[float], [])"});
    case kStrIntDict:
      return pick({"{'a': 1, 'key': 2}", "{'a': 3}", "torch.jit.annotate(Dict[str, int], {})"});
    case kPair:
      return pick({"(1, 2.0)", "(-3, 0.5)"});
    default:
      return pick(
          {"torch.jit.annotate(Optional[int], None)", "torch.jit.annotate(Optional[int], 4)"});
  }
}

std::string RandomProgram::call(const Function& function, int depth) {
  std::string text = function.name + "(";
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    if (i > 0) text += ", ";
    if (oneIn(4)) text += "p" + std::to_string(i) + "=";
    text += expr(function.parameters[i], depth - 1);
  }
  return text + ")";
}

std::string RandomProgram::expr(Type type, int depth) {
  std::string name = variable(type);
  if (depth <= 0 || oneIn(4)) return name.empty() || oneIn(4) ? literal(type) : name;
  if (oneIn(8)) {
    return "(" + expr(type, depth - 1) + " if " + boolExpr(depth - 1) + " else " +
           expr(type, depth - 1) + ")";
  }
  if (!functions_.empty() && oneIn(6)) {
    const Function& f = functions_[below(functions_.size())];
    if (f.result == type) return call(f, depth);
  }
  switch (type) {
    case kInt:
      return intExpr(depth - 1);
    case kFloat:
      return floatExpr(depth - 1);
    case kBool:
      return boolExpr(depth - 1);
    case kStr:
      return strExpr(depth - 1);
    case kTensor:
      return tensorExpr(depth - 1);
    case kOptionalInt:
      return optionalExpr(depth - 1);
    default:
      return containerExpr(type, depth - 1);
  }
}

std::string RandomProgram::intExpr(int depth) {
  auto operand = [&](Type type) { return expr(type, depth); };
  switch (below(14)) {
    case 0:
      return "len(" + operand(static_cast<Type>(kIntList + below(3))) + ")";
    case 1:
      return "int(" + operand(oneIn(2) ? kFloat : kBool) + ")";
    case 2:
      return operand(kIntList) + "[" + operand(kInt) + "]";
    case 3:
      return operand(kStrIntDict) + "[" + operand(kStr) + "]";
    case 4:
      return operand(kPair) + "[0]";
    case 5:
      return pick({"min", "max"}) + "(" + operand(kInt) + ", " + operand(kInt) + ")";
    case 6:
      return pick({"abs(", "-(", "~("}) + operand(kInt) + ")";
    case 7:
      return "sum(" + operand(kIntList) + ")";
    case 8:
      return operand(kTensor) + ".size(" + operand(kInt) + ")";
    case 9:
      return "(" + operand(kInt) + pick({" << ", " >> ", " & ", " | ", " ^ "}) + operand(kInt) +
             ")";
    case 10:
      return in_method_ ? "self.count" : "int(" + operand(kTensor) + ")";
    default:
      return "(" + operand(kInt) + pick({" + ", " - ", " * ", " // ", " % "}) + operand(kInt) + ")";
  }
}

std::string RandomProgram::floatExpr(int depth) {
  auto operand = [&](Type type) { return expr(type, depth); };
  switch (below(9)) {
    case 0:
      return "float(" + operand(kInt) + ")";
    case 1:
      return "(" + operand(kInt) + " / " + operand(kInt) + ")";
    case 2:
      return operand(kPair) + "[1]";
    case 3:
      return operand(kFloatList) + "[" + operand(kInt) + "]";
    case 4:
      return pick({"math.sqrt(", "math.exp(", "math.sin(", "abs("}) + operand(kFloat) + ")";
    case 5:
      return "sum(" + operand(kFloatList) + ")";
    default:
      return "(" + operand(kFloat) + pick({" + ", " - ", " * ", " / ", " % ", " // ", " ** "}) +
             operand(oneIn(3) ? kInt : kFloat) + ")";
  }
}

std::string RandomProgram::boolExpr(int depth) {
  auto operand = [&](Type type) { return expr(type, depth); };
  if (depth <= 0) return expr(kBool, 0);
  switch (below(9)) {
    case 0:
      return "(" + operand(kBool) + pick({" and ", " or "}) + operand(kBool) + ")";
    case 1:
      return "(not " + operand(kBool) + ")";
    case 2:
      return "(" + operand(kInt) + pick({" in ", " not in "}) + operand(kIntList) + ")";
    case 3:
      return "(" + operand(kStr) + pick({" in ", " not in "}) + operand(kStrIntDict) + ")";
    case 4:
      return "(" + operand(kOptionalInt) + pick({" is ", " is not "}) + "None)";
    case 5:
      return "(" + operand(kInt) + " < " + operand(kInt) + " <= " + operand(kInt) + ")";
    case 6:
      return "bool(" + operand(oneIn(3) ? kTensor : kInt) + ")";
    default: {
      Type type = static_cast<Type>(below(4));
      return "(" + operand(type) + pick({" == ", " != "}) + operand(type) + ")";
    }
  }
}

std::string RandomProgram::strExpr(int depth) {
  auto operand = [&](Type type) { return expr(type, depth); };
  switch (below(8)) {
    case 0:
      return "str(" + operand(anyType()) + ")";
    case 1:
      return "(" + operand(kStr) + " + " + operand(kStr) + ")";
    case 2:
      return operand(kStr) + pick({".upper()", ".strip()", ".title()", ".lower()"});
    case 3:
      return operand(kStr) + "[" + operand(kInt) + ":" + operand(kInt) + "]";
    case 4: {
      std::string name = variable(anyType());
      return name.empty() ? "'none'" : "f'<{" + name + "}>'";
    }
    case 5:
      return "'{} {}'.format(" + operand(anyType()) + ", " + operand(kInt) + ")";
    case 6:
      return "','.join([" + operand(kStr) + ", " + operand(kStr) + "])";
    default:
      return "('%s' % " + operand(kInt) + ")";
  }
}

std::string RandomProgram::tensorExpr(int depth) {
  auto operand = [&](Type type) { return expr(type, depth); };
  switch (below(10)) {
    case 0:
      return "torch." + pick({"relu", "sigmoid", "abs", "neg", "sum"}) + "(" + operand(kTensor) +
             ")";
    case 1:
      return operand(kTensor) + "[" +
             pick({"0", "-1", "1:", "::2", "None", "...", "..., 0", ":, 0"}) + "]";
    case 2:
      return operand(kTensor) + ".reshape(" + operand(kIntList) + ")";
    case 3:
      return "torch.cat([" + operand(kTensor) + ", " + operand(kTensor) + "], " + operand(kInt) +
             ")";
    case 4:
      return operand(kTensor) + pick({".t()", ".float()", ".flatten()", ".clone()", ".sum(0)"});
    case 5:
      return "torch.tensor(" + operand(static_cast<Type>(below(3))) + ")";
    case 6:
      return "(" + operand(kTensor) + pick({" < ", " == ", " > "}) + operand(kTensor) + ")";
    default:
      return "(" + operand(kTensor) + pick({" + ", " * ", " - ", " / ", " @ "}) +
             operand(oneIn(2) ? kTensor : kInt) + ")";
  }
}

std::string RandomProgram::containerExpr(Type type, int depth) {
  auto operand = [&](Type t) { return expr(t, depth); };
  switch (type) {
    case kIntList:
      switch (below(7)) {
        case 0:
          return "[i * " + operand(kInt) + " for i in range(" + pick({"0", "3", "5"}) + ")]";
        case 1:
          return "[v for v in " + operand(kIntList) + " if v > " + operand(kInt) + "]";
        case 2:
          return "sorted(" + operand(kIntList) + ")";
        case 3:
          return operand(kIntList) + "[" + operand(kInt) + ":" + operand(kInt) + "]";
        case 4:
          return "list(" + operand(kStrIntDict) + ".values())";
        case 5:
          return "(" + operand(kIntList) + " + " + operand(kIntList) + ")";
        default:
          return "[" + operand(kInt) + ", " + operand(kInt) + "]";
      }
    case kFloatList:
      return oneIn(2) ? "[float(v) for v in " + operand(kIntList) + "]"
                      : "[" + operand(kFloat) + ", " + operand(kFloat) + "]";
    case kStrIntDict:
      return oneIn(2) ? "{str(k): k for k in " + operand(kIntList) + "}"
                      : "{" + operand(kStr) + ": " + operand(kInt) + "}";
    default:
      return "(" + operand(kInt) + ", " + operand(kFloat) + ")";
  }
}

std::string RandomProgram::optionalExpr(int depth) {
  if (oneIn(2)) return "torch.jit.annotate(Optional[int], " + expr(kInt, depth) + ")";
  return expr(kOptionalInt, depth);
}

void RandomProgram::block(int depth) {
  indent_ += oneIn(2) ? 2 : 4;
  const size_t indent = indent_;
  const size_t visible = variables_.size();
  size_t before = out_.size();
  for (size_t n = 1 + below(4); n > 0 && budget_ > 0; --n) statement(depth - 1);
  if (out_.size() == before) line("pass");
  variables_.resize(visible);
  indent_ = indent;
}

void RandomProgram::statement(int depth) {
  --budget_;
  const size_t choice = below(16);
  if (depth > 0 && choice < 3) return branch(depth);
  if (depth > 0 && choice < 5) return loop(depth);
  if (depth > 0 && choice == 5) return guarded(depth);
  if (choice == 6) return exit(depth);
  if (choice < 10) return mutation(depth);
  assignment(depth);
}

void RandomProgram::assignment(int depth) {
  Type type = anyType();
  // Assigning again keeps the type; new names are annotated now and then.
  std::string name = variable(type);
  if (!name.empty() && oneIn(2)) {
    line(name + " = " + expr(type, depth + 1));
    return;
  }
  name = "v" + std::to_string(names_++);
  if (type == kPair && oneIn(2)) {
    std::string other = "v" + std::to_string(names_++);
    line(name + ", " + other + " = " + expr(kPair, depth + 1));
    variables_.push_back({name, kInt});
    variables_.push_back({other, kFloat});
    return;
  }
  std::string annotation = type == kOptionalInt || oneIn(4) ? std::string(": ") + nameOf(type) : "";
  line(name + annotation + " = " + expr(type, depth + 1));
  variables_.push_back({name, type});
}

void RandomProgram::mutation(int depth) {
  Type type = anyType();
  std::string name = variable(type);
  if (in_method_ && oneIn(4)) return line("self.count += " + expr(kInt, depth));
  if (name.empty()) return assignment(depth);
  switch (type) {
    case kInt:
    case kFloat:
      return line(name + pick({" += ", " -= ", " *= "}) + expr(type, depth));
    case kStr:
      return line(name + " += " + expr(type, depth));
    case kTensor:
      if (oneIn(2)) return line(name + pick({" += ", " *= "}) + expr(oneIn(2) ? kInt : kTensor, 1));
      return line(name + pick({"[0] = ", "[...] = ", "[:, 0] = "}) + expr(kFloat, depth));
    case kIntList:
      switch (below(4)) {
        case 0:
          return line(name + ".append(" + expr(kInt, depth) + ")");
        case 1:
          return line(name + ".pop()");
        case 2:
          return line("del " + name + "[" + expr(kInt, depth) + "]");
        default:
          return line(name + "[" + expr(kInt, depth) + "] = " + expr(kInt, depth));
      }
    case kStrIntDict:
      if (oneIn(3)) return line("del " + name + "[" + expr(kStr, depth) + "]");
      return line(name + "[" + expr(kStr, depth) + "] = " + expr(kInt, depth));
    default:
      return assignment(depth);
  }
}

void RandomProgram::branch(int depth) {
  const size_t outer = indent_;
  std::string optional = variable(kOptionalInt);
  if (!optional.empty() && oneIn(3)) {
    line("if " + optional + " is not None:");
    const size_t visible = variables_.size();
    variables_.push_back({optional, kInt});
    block(depth);
    variables_.resize(visible);
  } else {
    line("if " + boolExpr(depth) + ":");
    block(depth);
  }
  indent_ = outer;
  for (size_t n = below(3); n > 0; --n) {
    line("elif " + boolExpr(depth) + ":");
    block(depth);
    indent_ = outer;
  }
  if (!oneIn(3)) {
    line("else:");
    block(depth);
    indent_ = outer;
  }
}

void RandomProgram::loop(int depth) {
  const size_t outer = indent_;
  const size_t visible = variables_.size();
  std::string name = "i" + std::to_string(names_++);
  std::string other = "j" + std::to_string(names_++);
  std::string target = name;
  std::string iterable;
  switch (below(6)) {
    case 0:
      line("while " + boolExpr(depth) + ":");
      iterable = "";
      break;
    case 1:
      iterable = expr(kIntList, depth);
      variables_.push_back({name, kInt});
      break;
    case 2:
      target = name + ", " + other;
      iterable = "enumerate(" + expr(kFloatList, depth) + ")";
      variables_.push_back({name, kInt});
      variables_.push_back({other, kFloat});
      break;
    case 3:
      target = name + ", " + other;
      iterable = "zip(" + expr(kIntList, depth) + ", " + expr(kIntList, depth) + ")";
      variables_.push_back({name, kInt});
      variables_.push_back({other, kInt});
      break;
    case 4:
      iterable = pick({"(1, 2, 3)", "('a', 'b')"});
      variables_.push_back({name, iterable[1] == '1' ? kInt : kStr});
      break;
    default:
      iterable = "range(" + expr(kInt, depth) + ")";
      variables_.push_back({name, kInt});
      break;
  }
  if (!iterable.empty()) line("for " + target + " in " + iterable + ":");
  ++loops_;
  block(depth);
  --loops_;
  variables_.resize(visible);
  indent_ = outer;
}

void RandomProgram::guarded(int depth) {
  const size_t outer = indent_;
  line("with torch.no_grad():");
  block(depth);
  indent_ = outer;
}

void RandomProgram::exit(int depth) {
  switch (below(6)) {
    case 0:
      return line("assert " + boolExpr(depth) + ", " + expr(kStr, depth));
    case 1:
      return line("raise " + pick({"ValueError", "RuntimeError", "Exception"}) + "(" +
                  expr(kStr, depth) + ")");
    case 2:
    case 3:
      if (loops_ > 0) return line(pick({"break", "continue"}));
      [[fallthrough]];
    default:
      return line("return " + expr(result_, depth));
  }
}

void RandomProgram::function(const std::string& name, std::vector<Variable> parameters, Type result,
                             bool is_method) {
  std::string header = "def " + name + "(" + (is_method ? "self" : "");
  for (const Variable& p : parameters) {
    if (header.back() != '(') header += ", ";
    header += p.name + ": " + nameOf(p.type);
  }
  line(header + ") -> " + nameOf(result) + ":");
  variables_ = std::move(parameters);
  result_ = result;
  in_method_ = is_method;
  budget_ = static_cast<int>(2 + below(10));
  indent_ += 4;
  const size_t indent = indent_;
  while (budget_ > 0) {
    statement(2);
    indent_ = indent;
  }
  line("return " + expr(result, 2));
  indent_ -= 4;
  in_method_ = false;
}

void RandomProgram::classDefinition() {
  std::string name = "C" + std::to_string(classes_.size());
  line("class " + name + ":");
  indent_ += 4;
  line("def __init__(self, count: int):");
  line("    self.count = count");
  function("step", {{"p0", kInt}}, kInt, /*is_method=*/true);
  indent_ -= 4;
  classes_.push_back(name);
}

std::string RandomProgram::make() {
  for (size_t n = below(2); n > 0; --n) classDefinition();
  for (size_t n = below(4); n > 0; --n) {
    Function f{"f" + std::to_string(functions_.size()), {}, anyType()};
    std::vector<Variable> parameters;
    for (size_t i = below(4); i > 0; --i) {
      parameters.push_back({"p" + std::to_string(parameters.size()), anyType()});
      f.parameters.push_back(parameters.back().type);
    }
    function(f.name, std::move(parameters), f.result, /*is_method=*/false);
    functions_.push_back(std::move(f));
  }
  for (const std::string& name : classes_) {
    functions_.push_back({name + "(3).step", {kInt}, kInt});
  }
  function("main", {{"x", kInt}, {"y", kFloat}, {"t", kTensor}}, anyType(), /*is_method=*/false);
  return out_;
}

}  // namespace wick
