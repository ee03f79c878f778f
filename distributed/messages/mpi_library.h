// Open MPI by its symbols, so that building needs no headers of it. Its handles are addresses of
// objects with known names (ompi_mpi_comm_world), as its own header has them.
#pragma once

#include <string>

#include "core/error.h"

namespace wick::distributed {

using MpiHandle = void*;
inline constexpr int kMpiSuccess = 0;  // MPI_SUCCESS

// A symbol of the library, which is opened at the first call and stays. RuntimeError when it is not
// there or is another MPI.
void* mpiSymbol(const char* name);

template <class T>
void findMpi(const char* name, T& into) {
  into = reinterpret_cast<T>(mpiSymbol(name));
}

// What every use of it needs.
struct MpiBasics {
  int (*init_thread)(int*, char***, int, int*);
  int (*finalize)();
  int (*comm_rank)(MpiHandle, int*);
  int (*comm_size)(MpiHandle, int*);
  int (*comm_set_errhandler)(MpiHandle, MpiHandle);
  int (*error_string)(int, char*, int*);
  int (*test)(MpiHandle*, int*, void*);
  MpiHandle world, errors_return, uint8;

  MpiBasics();
  // Joins the world. Only the calling thread speaks with MPI. Once in a process.
  void begin(int& rank, int& size) const;
  void check(int status, const char* call) const;
};

}  // namespace wick::distributed
