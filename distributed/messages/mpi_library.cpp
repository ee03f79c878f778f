#include "distributed/messages/mpi_library.h"

#include <dlfcn.h>

namespace wick::distributed {

namespace {

constexpr int kFunneled = 1;           // MPI_THREAD_FUNNELED: one thread calls
constexpr size_t kMaxErrorText = 256;  // MPI_MAX_ERROR_STRING

void* open() {
  // Its plugins look for its symbols among all, and it cannot be closed any more.
  for (const char* name : {"libmpi.so.40", "libmpi.so"}) {
    if (void* found = dlopen(name, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE)) return found;
  }
  const char* said = dlerror();
  throwRuntimeError("MPI: Open MPI's libmpi.so.40 cannot be opened: {}", said ? said : "no reason");
}

}  // namespace

void* mpiSymbol(const char* name) {
  static void* const library = open();
  void* const symbol = dlsym(library, name);
  WICK_CHECK(symbol, "MPI: the library has no {}; expected Open MPI", name);
  return symbol;
}

MpiBasics::MpiBasics() {
  findMpi("MPI_Init_thread", init_thread);
  findMpi("MPI_Finalize", finalize);
  findMpi("MPI_Comm_rank", comm_rank);
  findMpi("MPI_Comm_size", comm_size);
  findMpi("MPI_Comm_set_errhandler", comm_set_errhandler);
  findMpi("MPI_Error_string", error_string);
  findMpi("MPI_Test", test);
  findMpi("ompi_mpi_comm_world", world);
  findMpi("ompi_mpi_errors_return", errors_return);
  findMpi("ompi_mpi_uint8_t", uint8);
}

void MpiBasics::begin(int& rank, int& size) const {
  int provided = 0;
  check(init_thread(nullptr, nullptr, kFunneled, &provided), "MPI_Init_thread");
  check(comm_set_errhandler(world, errors_return), "MPI_Comm_set_errhandler");
  check(comm_rank(world, &rank), "MPI_Comm_rank");
  check(comm_size(world, &size), "MPI_Comm_size");
}

void MpiBasics::check(int status, const char* call) const {
  if (status == kMpiSuccess) return;
  char text[kMaxErrorText + 1] = {};
  int length = 0;
  error_string(status, text, &length);
  throwRuntimeError("MPI: {} failed: {}", call, text);
}

}  // namespace wick::distributed
