// What format() and % refuse, with Python's messages.
#include <gtest/gtest.h>

#include <complex>

#include "core/error.h"
#include "ir/operator.h"

namespace wick::format_refusals_test {
namespace {

std::string errorOf(const char* op, const char* format, IValue value) {
  const auto& overloads = OperatorRegistry::instance().overloads(Symbol::fromQualString(op));
  std::vector<IValue> arguments = {IValue(format), std::move(value)};
  IValue result;
  try {
    overloads.at(0)->call(arguments.data(), arguments.size(), &result, 1);
  } catch (const RuntimeError& e) {
    return e.className() + ": " + std::string(e.brief());
  }
  return "no error: " + result.repr();
}

struct Case {
  const char* format;
  IValue value;
  const char* message;
};

TEST(FormatRefusals, ArgumentsThatNobodyReads) {
  const IValue three(makeTuple({IValue(1), IValue(2), IValue(3)}));
  EXPECT_EQ(errorOf("aten::percentFormat", "%d %d", three),
            "TypeError: Too many arguments for format string: not all arguments converted during "
            "string formatting");
}

TEST(FormatRefusals, Specifications) {
  const IValue imaginary(std::complex<double>(0, 1));
  for (const Case& c : std::vector<Case>{
           {"{:s}", 3, "ValueError: Unknown format code 's' for object of type 'int'"},
           {"{:d}", 2.5, "ValueError: Unknown format code 'd' for object of type 'float'"},
           {"{:x}", imaginary, "ValueError: Unknown format code 'x' for object of type 'complex'"},
           {"{:%}", imaginary, "ValueError: Unknown format code '%' for object of type 'complex'"},
           {"{:c}", "x", "ValueError: Unknown format code 'c' for object of type 'str'"},
           {"{:.3}", 3, "ValueError: Precision not allowed in integer format specifier"},
           {"{:+c}", 65, "ValueError: Sign not allowed with integer format specifier 'c'"},
           {"{:,c}", 65, "ValueError: Cannot specify ',' with 'c'."},
           {"{:#c}", 65,
            "ValueError: Alternate form (#) not allowed with integer format specifier 'c'"},
           {"{:c}", -1, "OverflowError: %c arg not in range(0x110000)"},
           {"{:c}", 1114112, "OverflowError: %c arg not in range(0x110000)"},
           {"{:,x}", 3, "ValueError: Cannot specify ',' with 'x'."},
           {"{:,n}", 3, "ValueError: Cannot specify ',' with 'n'."},
           {"{:_n}", 3, "ValueError: Cannot specify '_' with 'n'."},
           {"{:_n}", 2.5, "ValueError: Cannot specify '_' with 'n'."},
           {"{:=9}", imaginary,
            "ValueError: '=' alignment flag is not allowed in complex format specifier"},
           {"{:09}", imaginary,
            "ValueError: Zero padding is not allowed in complex format specifier"},
           {"{:=9}", "a", "ValueError: '=' alignment not allowed in string format specifier"},
           {"{:+}", "a", "ValueError: Sign not allowed in string format specifier"},
           {"{:#}", "a", "ValueError: Alternate form (#) not allowed in string format specifier"},
           {"{:,}", "a", "ValueError: Cannot specify ',' with 's'."},
           {"{:,,}", 3, "ValueError: Cannot specify ',' with ','."},
           {"{:__}", 3, "ValueError: Cannot specify '_' with '_'."},
           {"{:,_}", 3, "ValueError: Cannot specify both ',' and '_'."},
           {"{:.}", 3, "ValueError: Format specifier missing precision"},
           {"{:3dd}", 3, "ValueError: Invalid format specifier"},
           {"{:3}", IValue(makeList(types::Int(), {IValue(1)})),
            "TypeError: unsupported format string passed to list.__format__"},
           {"{:3}", IValue(), "TypeError: unsupported format string passed to NoneType.__format__"},
       }) {
    EXPECT_EQ(errorOf("aten::format", c.format, c.value), c.message) << c.format;
  }
}

TEST(FormatRefusals, Fields) {
  const IValue list(makeList(types::Int(), {IValue(1), IValue(2)}));
  auto dict = makeRef<DictObject>(types::String(), types::Int());
  dict->set("b", IValue(2));
  auto numbered = makeRef<DictObject>(types::Int(), types::Int());
  numbered->set(int64_t{1}, IValue(2));
  for (const Case& c : std::vector<Case>{
           {"{0[0}", list, "ValueError: expected '}' before end of string"},
           {"{0[a]}", list, "TypeError: list indices must be integers or slices, not str"},
           {"{0[2]}", list, "IndexError: list index out of range"},
           {"{0[2]}", IValue(numbered), "KeyError: 2"},
           {"{0[a]}", IValue(dict), "KeyError: 'a'"},
           {"{0[0]}", 3, "TypeError: 'int' object is not subscriptable"},
           {"{0.x}", 3, "AttributeError: 'int' object has no attribute 'x'"},
           {"{a}", 3, "KeyError: 'a'"},
           {"{0.}", 3, "ValueError: Empty attribute in format string"},
           {"{0}{}", 3,
            "ValueError: cannot switch from manual field specification to automatic field "
            "numbering"},
           {"{}{0}", 3,
            "ValueError: cannot switch from automatic field numbering to manual field "
            "specification"},
           {"{", 3, "ValueError: Single '{' encountered in format string"},
           {"}", 3, "ValueError: Single '}' encountered in format string"},
           {"{0", 3, "ValueError: expected '}' before end of string"},
           {"{0:{0:{0}}}", 3, "ValueError: Max string recursion exceeded"},
       }) {
    EXPECT_EQ(errorOf("aten::format", c.format, c.value), c.message) << c.format;
  }
}

TEST(FormatRefusals, Percent) {
  for (const Case& c : std::vector<Case>{
           {"%d", "a", "TypeError: %d requires a number for formatting, but got str"},
           {"%f", "a", "TypeError: %f requires a number for formatting, but got str"},
           {"%x", 2.5, "TypeError: %x format: an integer is required, not float"},
           {"%c", 2.5, "TypeError: %c requires an int or char for formatting, but got float"},
           {"%c", "ab", "TypeError: %c requires an int or char for formatting, but got str"},
           {"%c", -1, "OverflowError: %c arg not in range(0x110000)"},
           {"%d", std::nan(""), "ValueError: cannot convert float NaN to integer"},
           {"%d", 1e300, "OverflowError: %d: cannot convert float 1e+300 to a 64-bit int"},
           {"%d", Tensor::zeros({2}, DType::Long),
            "TypeError: only tensors of one element can be converted to numbers"},
           {"%q", 3, "ValueError: The specifier %q is not supported in format strings"},
       }) {
    EXPECT_EQ(errorOf("aten::percentFormat", c.format, c.value), c.message) << c.format;
  }
}

}  // namespace
}  // namespace wick::format_refusals_test
