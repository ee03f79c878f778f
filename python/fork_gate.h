// Forks of the process wait until no other thread is in the engine: a lock that one holds at that moment
// would never be free in the child.
#pragma once

namespace wick::python {

// The calling thread is in the engine, from its first entry to its last leaving. Entering waits while another
// thread forks, so nobody does it who holds the GIL or a lock of the engine without being there already.
void enterEngine() noexcept;
void leaveEngine() noexcept;
// For threads of the engine that call Python: whatever they do there belongs to what they were doing, and
// does not wait.
void continueInPython() noexcept;
void returnFromPython() noexcept;

// Lets os.fork, and all in Python that forks by it, wait. False with a Python error.
bool watchForks();

}  // namespace wick::python
