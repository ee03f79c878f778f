// The instructions whose work is not worth a place in the interpreter's loop.
#pragma once

#include <functional>
#include <string>

#include "core/ivalue.h"
#include "runtime/interpreter/instruction.h"

namespace wick {

// Where the output of print() goes: complete lines, a call a line. The default writes to the
// standard output, an empty handler is silence. Returns the one before. Thread-safe.
using PrintHandler = std::function<void(const std::string&)>;
PrintHandler setPrintHandler(PrintHandler handler);
void printValues(const std::vector<IValue>& values);

bool isInstance(const IValue& value, const std::vector<TypePtr>& types);
// `arguments`: tensor, depth of the list, kind of the elements (0 int, 1 float, 2 bool, 3 complex).
IValue toList(const std::vector<IValue>& arguments, const TypePtr& type);
IValue listElement(const ListObject& list, int64_t index);
IValue tupleSlice(const TupleObject& tuple, size_t begin, size_t end);
IValue tupleElement(const TupleObject& tuple, int64_t index);
IValue makeDict(const std::vector<IValue>& keys_and_values, const DictType& type);
// The value in `slot`; RuntimeError for one that has none yet, though its type is not optional.
IValue attributeOf(const Object& object, size_t slot);
// Raises what `raise` names: message and, when given, qualified class.
[[noreturn]] void raise(const std::vector<IValue>& arguments);
// Writes the elements of `object` (a tuple or list, `what`) to destinations.
void unpack(const std::vector<IValue>& elements, const char* what, const uint32_t* destinations,
            IValue* registers);
// Writes a value that came from outside of the frame to a scalar register; InternalError unless its
// tag is the one expected.
void storeScalar(IValue& destination, const IValue& value, uint16_t extra);

}  // namespace wick
