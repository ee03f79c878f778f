#include "tests/native/random_scalar_program.h"

namespace wick {

const char* RandomScalarProgram::nameOf(Type type) {
  const char* const names[] = {"int", "float", "bool"};
  return names[type];
}

std::string RandomScalarProgram::literal(Type type) {
  switch (type) {
    case kInt:
      return pick({"0", "1", "2", "3", "7", "-1", "-3", "16", "1000000007", "4294967296",
                   "9223372036854775807", "(-9223372036854775807 - 1)", "255"});
    case kFloat:
      return pick({"0.0", "1.0", "-0.5", "2.5", "1e300", "-3.75", "1e-3", "9.3e18", "float('nan')",
                   "float('inf')"});
    default:
      return pick({"True", "False"});
  }
}

std::string RandomScalarProgram::variable(Type type) {
  std::vector<const Variable*> fitting;
  for (const Variable& v : variables_) {
    if (v.type == type) fitting.push_back(&v);
  }
  return fitting.empty() ? literal(type) : fitting[below(fitting.size())]->name;
}

std::string RandomScalarProgram::call(const Function& function, int depth) {
  std::string text = function.name + "(";
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    if (i > 0) text += ", ";
    text += expr(function.parameters[i], depth - 1);
  }
  return text + ")";
}

std::string RandomScalarProgram::expr(Type type, int depth) {
  if (depth <= 0) return oneIn(3) ? literal(type) : variable(type);
  if (oneIn(12)) {
    for (const Function& f : functions_) {
      if (f.result == type && oneIn(2)) return call(f, depth);
    }
  }
  if (oneIn(10)) {
    return "(" + expr(type, depth - 1) + " if " + boolExpr(depth - 1) + " else " +
           expr(type, depth - 1) + ")";
  }
  switch (type) {
    case kInt:
      return intExpr(depth);
    case kFloat:
      return floatExpr(depth);
    default:
      return boolExpr(depth);
  }
}

std::string RandomScalarProgram::intExpr(int depth) {
  switch (below(12)) {
    case 0:
      return "int(" + floatExpr(depth - 1) + ")";
    case 1:
      return "int(" + boolExpr(depth - 1) + ")";
    case 2:
      return "len(numbers)";
    case 3:
      return oneIn(4) ? "numbers[" + intExpr(depth - 1) + "]"
                      : "numbers[" + intExpr(depth - 1) + " % len(numbers)]";
    case 4:
      return "pair[0]";
    case 5:
      return "-" + variable(kInt);
    case 6:
    case 7: {
      // Zero is possible but seldom.
      std::string divisor = oneIn(3) ? literal(kInt) : "(" + intExpr(depth - 1) + " | 1)";
      if (oneIn(20)) divisor = variable(kInt);
      return "(" + intExpr(depth - 1) + pick({" // ", " % "}) + divisor + ")";
    }
    case 8:
      return variable(kInt);
    default:
      return "(" + expr(kInt, depth - 1) + pick({" + ", " - ", " * ", " & ", " | ", " ^ "}) +
             expr(kInt, depth - 1) + ")";
  }
}

std::string RandomScalarProgram::floatExpr(int depth) {
  if (depth <= 0) return variable(kFloat);
  switch (below(8)) {
    case 0:
      return "float(" + intExpr(depth - 1) + ")";
    case 1:
      return "-" + variable(kFloat);
    case 2:
      return "pair[1]";
    case 3:
      return "(" + intExpr(depth - 1) + " / " + variable(kInt) + ")";
    case 4:
      return "(" + floatExpr(depth - 1) + pick({" // ", " % ", " / "}) + expr(kFloat, depth - 1) +
             ")";
    case 5:
      return "(" + intExpr(depth - 1) + pick({" * ", " + "}) + floatExpr(depth - 1) + ")";
    default:
      return "(" + expr(kFloat, depth - 1) + pick({" + ", " - ", " * "}) + expr(kFloat, depth - 1) +
             ")";
  }
}

std::string RandomScalarProgram::boolExpr(int depth) {
  if (depth <= 0) return oneIn(2) ? variable(kBool) : variable(kInt) + " > " + literal(kInt);
  switch (below(7)) {
    case 0:
      return "(not " + boolExpr(depth - 1) + ")";
    case 1:
      return "(" + boolExpr(depth - 1) + pick({" and ", " or "}) + boolExpr(depth - 1) + ")";
    case 2:
      return "(" + expr(kFloat, depth - 1) + pick({" < ", " <= ", " > ", " >= ", " == ", " != "}) +
             expr(kFloat, depth - 1) + ")";
    case 3:
      return "bool(" + expr(oneIn(2) ? kInt : kFloat, depth - 1) + ")";
    case 4:
      return "(" + boolExpr(depth - 1) + pick({" == ", " != "}) + boolExpr(depth - 1) + ")";
    default:
      return "(" + expr(kInt, depth - 1) + pick({" < ", " <= ", " > ", " >= ", " == ", " != "}) +
             expr(kInt, depth - 1) + ")";
  }
}

void RandomScalarProgram::assignment() {
  std::vector<const Variable*> assignable;
  for (const Variable& v : variables_) {
    if (v.assignable) assignable.push_back(&v);
  }
  if (assignable.empty() || oneIn(5)) {
    auto type = static_cast<Type>(below(3));
    std::string name = "v" + std::to_string(names_++);
    line(name + " = " + expr(type, 3));
    variables_.push_back({name, type, true});
    return;
  }
  const Variable target = *assignable[below(assignable.size())];
  const Variable other = *assignable[below(assignable.size())];
  if (oneIn(6) && target.type == other.type && target.name != other.name) {
    line(target.name + ", " + other.name + " = " + expr(target.type, 2) + ", " +
         expr(target.type, 2));
  } else if (target.type != kBool && oneIn(2)) {
    line(target.name + pick({" += ", " -= ", " *= "}) + expr(target.type, 2));
  } else {
    line(target.name + " = " + expr(target.type, 3));
  }
}

void RandomScalarProgram::listStatement() {
  switch (below(5)) {
    case 3:
      line("maybe = choose(" + intExpr(2) + ", " + boolExpr(1) + ")");
      return;
    case 4:
      line("if maybe is not None and maybe " + pick({"!= ", "< "}) + intExpr(1) + ":");
      indent_ += 4;
      line("a_number = maybe + " + intExpr(1));
      line("numbers[0] = a_number");
      indent_ -= 4;
      return;
    case 0:
      line("if len(numbers) < 40:");
      indent_ += 4;
      line("numbers.append(" + intExpr(2) + ")");
      indent_ -= 4;
      return;
    case 1:
      line("numbers[" + intExpr(2) + " % len(numbers)] = " + intExpr(2));
      return;
    default:
      line("pair = (" + intExpr(2) + ", " + floatExpr(2) + ")");
  }
}

void RandomScalarProgram::branch(int depth) {
  line("if " + boolExpr(2) + ":");
  block(depth - 1);
  if (oneIn(3)) {
    line("elif " + boolExpr(2) + ":");
    block(depth - 1);
  }
  if (oneIn(2)) {
    line("else:");
    block(depth - 1);
  }
}

void RandomScalarProgram::loop(int depth) {
  ++loops_;
  std::string counter = "i" + std::to_string(names_++);
  if (oneIn(2)) {
    std::string count = oneIn(3) ? std::to_string(below(30)) : intExpr(1) + " % 9";
    switch (below(4)) {
      case 0:
        line("for " + counter + " in range(" + count + ", -2, -" + std::to_string(1 + below(3)) +
             "):");
        break;
      case 1:
        line("for " + counter + " in numbers[:12]:");
        break;
      default:
        line("for " + counter + " in range(" + count + "):");
    }
    variables_.push_back({counter, kInt, oneIn(4)});
    block(depth - 1);
    variables_.pop_back();
  } else {
    line(counter + " = 0");
    line("while " + counter + " < " + std::to_string(1 + below(40)) +
         (oneIn(2) ? " and " + boolExpr(2) : "") + ":");
    indent_ += 4;
    line(counter + " += 1");
    indent_ -= 4;
    variables_.push_back({counter, kInt, false});
    block(depth - 1);
    variables_.pop_back();
  }
  --loops_;
}

void RandomScalarProgram::leave() {
  if (loops_ > 0 && !oneIn(4)) {
    line(pick({"break", "continue"}));
  } else if (oneIn(3)) {
    line(pick({"raise ValueError('value')", "raise RuntimeError('limit')"}));
  } else if (in_main_) {
    line("return (" + intExpr(1) + ", " + floatExpr(1) + ", " + boolExpr(1) + ", numbers)");
  } else {
    line("return " + expr(result_, 2));
  }
}

void RandomScalarProgram::statement(int depth) {
  --budget_;
  size_t choice = below(16);
  if (choice < 7 || depth <= 0 || budget_ <= 0) return assignment();
  if (choice < 9) return listStatement();
  if (choice < 12) return branch(depth);
  if (choice < 15) return loop(depth);
  line("if " + boolExpr(2) + ":");
  indent_ += 4;
  leave();
  indent_ -= 4;
}

// What a block defines is forgotten behind it.
void RandomScalarProgram::block(int depth) {
  size_t before = variables_.size();
  indent_ += 4;
  size_t count = 1 + below(4);
  for (size_t i = 0; i < count; ++i) statement(depth);
  indent_ -= 4;
  variables_.resize(before);
}

void RandomScalarProgram::function(const std::string& name, const std::vector<Variable>& parameters,
                                   Type result) {
  variables_ = parameters;
  result_ = result;
  budget_ = in_main_ ? 30 : 12;
  std::string header;
  for (const Variable& p : parameters) {
    if (!header.empty()) header += ", ";
    header += p.name + ": " + nameOf(p.type);
  }
  std::string returned = in_main_ ? "Tuple[int, float, bool, List[int]]" : nameOf(result);
  line("def " + name + "(" + header + ") -> " + returned + ":");
  indent_ += 4;
  line("numbers = [3, 1, 4, 1, 5]");
  line("pair = (2, 0.5)");
  line("a_number = " + intExpr(1));
  line("maybe = choose(1, True)");
  size_t count = in_main_ ? 6 + below(6) : 2 + below(4);
  for (size_t i = 0; i < count; ++i) statement(3);
  line(in_main_ ? "return (" + intExpr(2) + ", " + floatExpr(2) + ", " + boolExpr(1) + ", numbers)"
                : "return " + expr(result, 2));
  indent_ -= 4;
  line("");
}

std::string RandomScalarProgram::make() {
  out_ =
      "def choose(n: int, none: bool) -> Optional[int]:\n    if none:\n        return None\n"
      "    return n\n\n";
  size_t count = below(3);
  for (size_t i = 0; i < count; ++i) {
    std::vector<Variable> parameters = {{"p", kInt, true}, {"q", kFloat, true}};
    if (oneIn(2)) parameters.push_back({"r", kBool, true});
    Function f{"f" + std::to_string(i), {}, static_cast<Type>(below(3))};
    for (const Variable& p : parameters) f.parameters.push_back(p.type);
    function(f.name, parameters, f.result);
    functions_.push_back(f);
  }
  in_main_ = true;
  function("main",
           {{"a", kInt, true}, {"b", kInt, true}, {"x", kFloat, true}, {"flag", kBool, true}},
           kInt);
  return out_;
}

}  // namespace wick
