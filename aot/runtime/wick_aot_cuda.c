#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "wick_aot_cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wick_aot_cuda_inside.h"
#include "wick_aot_onednn.h"

/* Numbers of the driver. */
enum {
  kOutOfMemory = 2,
  kMajor = 75,
  kMinor = 76,
  kMemoryType = 2,
  kDeviceOrdinal = 9,
  kDeviceMemory = 2,
  kUnifiedMemory = 4,
  kOwnStream = 1,       /* does not wait for the default stream */
  kPortable = 1,        /* memory of the host that all contexts know */
  kThreadCapture = 1,   /* what other threads do does not disturb it */
  kOldestDriver = 12000 /* kernels have parameters of up to 4 kB */
};
enum { kAlignment = 256, kTensorAlignment = 16, kGraphs = 8 };

/* What states of one model on one device share. */
typedef struct wick_cuda_shared {
  struct wick_cuda_shared* next;
  const wick_aot_model* model;
  int device;
  int users;
  void* module;
  void** functions;
  wick_cuda_address weights;
} wick_cuda_shared;

/* Of the calls with one signature, sizes and addresses. */
typedef struct wick_cuda_graph {
  int32_t signature; /* -1: there are none */
  int64_t sizes[WICK_AOT_MAX_SYMBOLS];
  void** addresses;
  void* executable; /* null: it was called once */
} wick_cuda_graph;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of the next three */
static wick_cuda_shared* all_shared;
static wick_cuda_driver found_driver;
static int driver_is_found;

static wick_cuda_state* state_of(const wick_aot_state* state) {
  return (wick_cuda_state*)state->library;
}
static const wick_aot_cuda_program* program_of(const wick_aot_state* state) {
  return state->model->cuda;
}

int wick_cuda_fail(wick_aot_state* state, int code, const char* format, ...) {
  va_list values;
  const int used = snprintf(state->error, sizeof state->error, "%s: ", state->model->name);
  va_start(values, format);
  if (used >= 0 && (size_t)used < sizeof state->error) {
    vsnprintf(state->error + used, sizeof state->error - (size_t)used, format, values);
  }
  va_end(values);
  return code;
}

int wick_cuda_check(wick_aot_state* state, int result, const char* what) {
  if (result == 0) return WICK_AOT_OK;
  const char *name = NULL, *text = NULL;
  found_driver.cuGetErrorName(result, &name);
  found_driver.cuGetErrorString(result, &text);
  return wick_cuda_fail(state, result == kOutOfMemory ? WICK_AOT_MEMORY : WICK_AOT_DEVICE,
                        "CUDA: %s: %s (%s)", what, text ? text : "an unknown error",
                        name ? name : "no name");
}

/* ---- libraries ---- */

void* wick_cuda_open(wick_aot_state* state, const char* const* names) {
  const char* folders[3] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
  char path[1024], first[256] = "";
  for (int folder = -1; folder < 3; ++folder) {
    if (folder >= 0 && (!folders[folder] || !*folders[folder])) continue;
    for (const char* const* name = names; *name; ++name) {
      const int length = folder < 0
                             ? snprintf(path, sizeof path, "%s", *name)
                             : snprintf(path, sizeof path, "%s/lib64/%s", folders[folder], *name);
      if (length < 0 || (size_t)length >= sizeof path) continue;
      void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
      if (library) return library;
      const char* const said = dlerror();
      if (said && !*first) snprintf(first, sizeof first, "%s", said);
    }
  }
  wick_cuda_fail(state, WICK_AOT_LIBRARY, "the library %s cannot be opened: %s", names[0], first);
  return NULL;
}

/* The mutex is held. */
static int open_driver(wick_aot_state* state) {
  static const char* const names[] = {"libcuda.so.1", "libcuda.so", NULL};
  if (driver_is_found) return WICK_AOT_OK;
  void* const library = wick_cuda_open(state, names);
  if (!library) {
    char why[300];
    snprintf(why, sizeof why, "%s", state->error + strlen(state->model->name) + 2);
    return wick_cuda_fail(state, WICK_AOT_DEVICE, "no CUDA driver: %s", why);
  }
#define FIND(name, parameters)                                                           \
  {                                                                                      \
    void* const found = dlsym(library, #name);                                           \
    if (!found) {                                                                        \
      return wick_cuda_fail(state, WICK_AOT_DEVICE,                                      \
                            "the CUDA driver has no function " #name "; it is too old"); \
    }                                                                                    \
    memcpy(&found_driver.name, &found, sizeof found);                                    \
  }
  WICK_CUDA_DRIVER(FIND)
#undef FIND
  int version = 0;
  const int asked = found_driver.cuDriverGetVersion(&version);
  if (asked != 0 || version < kOldestDriver) {
    return wick_cuda_fail(state, WICK_AOT_DEVICE,
                          "the CUDA driver is for version %d.%d, expected 12.0 or later",
                          version / 1000, version % 1000 / 10);
  }
  const int code = wick_cuda_check(state, found_driver.cuInit(0), "starting the driver");
  if (code == WICK_AOT_OK) driver_is_found = 1;
  return code;
}

/* ---- contexts ---- */

static int enter(wick_aot_state* state, void** before) {
  const wick_cuda_state* c = state_of(state);
  *before = c->context;
  int code = wick_cuda_check(state, c->driver->cuCtxGetCurrent(before), "asking for the context");
  if (code == WICK_AOT_OK && *before != c->context) {
    code = wick_cuda_check(state, c->driver->cuCtxSetCurrent(c->context), "choosing the device");
  }
  return code;
}
static void leave(const wick_aot_state* state, void* before) {
  const wick_cuda_state* c = state_of(state);
  if (before != c->context) c->driver->cuCtxSetCurrent(before);
}

/* The device of the thread's context, or the first one. */
static int choose_device(wick_aot_state* state) {
  wick_cuda_state* c = state_of(state);
  void* current = NULL;
  int count = 0;
  int code = wick_cuda_check(state, c->driver->cuDeviceGetCount(&count), "counting devices");
  if (code != WICK_AOT_OK) return code;
  if (count == 0) return wick_cuda_fail(state, WICK_AOT_DEVICE, "there is no CUDA device");
  code = wick_cuda_check(state, c->driver->cuCtxGetCurrent(&current), "asking for the context");
  if (code == WICK_AOT_OK && current) {
    code = wick_cuda_check(state, c->driver->cuCtxGetDevice(&c->device), "asking for the device");
  }
  if (code != WICK_AOT_OK) return code;
  return wick_cuda_check(state, c->driver->cuDevicePrimaryCtxRetain(&c->context, c->device),
                         "opening the device");
}

/* ---- code and weights ---- */

/* The image that fits the device best: machine code, or PTX that the driver compiles. */
static const wick_aot_cuda_image* choose_image(const wick_aot_cuda_program* program, int major,
                                               int minor) {
  const wick_aot_cuda_image* best = NULL;
  for (int32_t i = 0; i < program->num_images; ++i) {
    const wick_aot_cuda_image* image = &program->images[i];
    const int fits = image->is_ptx
                         ? image->architecture <= 10 * major + minor
                         : image->architecture / 10 == major && image->architecture % 10 <= minor;
    if (!fits) continue;
    if (!best || (best->is_ptx && !image->is_ptx) ||
        (best->is_ptx == image->is_ptx && best->architecture < image->architecture)) {
      best = image;
    }
  }
  return best;
}

static int load_code(wick_aot_state* state, wick_cuda_shared* shared) {
  const wick_cuda_driver* driver = &found_driver;
  const wick_aot_cuda_program* program = program_of(state);
  int major = 0, minor = 0;
  char name[100] = "";
  if (program->num_kernels == 0) return WICK_AOT_OK;
  int code = wick_cuda_check(state, driver->cuDeviceGetAttribute(&major, kMajor, shared->device),
                             "asking for the architecture");
  if (code == WICK_AOT_OK) {
    code = wick_cuda_check(state, driver->cuDeviceGetAttribute(&minor, kMinor, shared->device),
                           "asking for the architecture");
  }
  if (code != WICK_AOT_OK) return code;
  const wick_aot_cuda_image* image = choose_image(program, major, minor);
  if (!image) {
    char list[200] = "";
    size_t used = 0;
    for (int32_t i = 0; i < program->num_images && used < sizeof list; ++i) {
      used += (size_t)snprintf(list + used, sizeof list - used, "%s%s_%d", i == 0 ? "" : ", ",
                               program->images[i].is_ptx ? "compute" : "sm",
                               (int)program->images[i].architecture);
    }
    driver->cuDeviceGetName(name, (int)sizeof name, shared->device);
    return wick_cuda_fail(
        state, WICK_AOT_DEVICE,
        "the model was built for %s, which this device (%s, sm_%d%d) does not run", list, name,
        major, minor);
  }
  code = wick_cuda_check(state,
                         driver->cuModuleLoadData(&shared->module, program->code + image->offset),
                         "loading the kernels");
  if (code != WICK_AOT_OK) return code;
  shared->functions = (void**)calloc((size_t)program->num_kernels, sizeof(void*));
  if (!shared->functions) return wick_cuda_fail(state, WICK_AOT_MEMORY, "memory is exhausted");
  for (int32_t i = 0; i < program->num_kernels && code == WICK_AOT_OK; ++i) {
    code = wick_cuda_check(
        state,
        driver->cuModuleGetFunction(&shared->functions[i], shared->module, program->kernels[i]),
        program->kernels[i]);
  }
  return code;
}

static int load_weights(wick_aot_state* state, wick_cuda_shared* shared) {
  const wick_cuda_driver* driver = &found_driver;
  const size_t bytes = (size_t)state->model->weights_bytes;
  if (bytes == 0) return WICK_AOT_OK;
  int code = wick_cuda_check(state, driver->cuMemAlloc_v2(&shared->weights, bytes),
                             "memory for the weights");
  if (code == WICK_AOT_OK) {
    code = wick_cuda_check(
        state, driver->cuMemcpyHtoDAsync_v2(shared->weights, state->weights, bytes, NULL),
        "copying the weights");
  }
  if (code == WICK_AOT_OK) {
    code = wick_cuda_check(state, driver->cuStreamSynchronize(NULL), "copying the weights");
  }
  return code;
}

/* The mutex is held, and the context is current. */
static void drop_shared(wick_cuda_shared* shared) {
  if (--shared->users > 0) return;
  wick_cuda_shared** at = &all_shared;
  while (*at && *at != shared) at = &(*at)->next;
  if (*at) *at = shared->next;
  if (shared->module) found_driver.cuModuleUnload(shared->module);
  if (shared->weights) found_driver.cuMemFree_v2(shared->weights);
  free(shared->functions);
  free(shared);
}

static int share(wick_aot_state* state) {
  wick_cuda_state* c = state_of(state);
  wick_cuda_shared* shared = all_shared;
  while (shared && (shared->model != state->model || shared->device != c->device)) {
    shared = shared->next;
  }
  if (shared) {
    ++shared->users;
    c->shared = shared;
    return WICK_AOT_OK;
  }
  shared = (wick_cuda_shared*)calloc(1, sizeof *shared);
  if (!shared) return wick_cuda_fail(state, WICK_AOT_MEMORY, "memory is exhausted");
  shared->model = state->model;
  shared->device = c->device;
  shared->users = 1;
  int code = load_code(state, shared);
  if (code == WICK_AOT_OK) code = load_weights(state, shared);
  if (code != WICK_AOT_OK) {
    drop_shared(shared);
    return code;
  }
  shared->next = all_shared;
  all_shared = shared;
  c->shared = shared;
  return WICK_AOT_OK;
}

/* ---- memory ---- */

static uint64_t aligned(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

static uint64_t slot_bytes(const wick_aot_slot* slot, const int64_t* symbols) {
  wick_aot_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.dtype = slot->dtype;
  tensor.rank = slot->rank;
  for (int32_t d = 0; d < slot->rank; ++d) {
    const int64_t size = slot->sizes[d];
    tensor.sizes[d] = size < 0 && symbols ? symbols[-1 - size] : size;
  }
  return aligned(wick_aot_tensor_bytes(&tensor));
}

/* What copies of all tensors of a call take at most. */
static uint64_t staging_bytes(const wick_aot_signature* s) {
  int64_t symbols[WICK_AOT_MAX_SYMBOLS];
  uint64_t most = 0;
  for (int32_t i = 0; i < s->num_symbols; ++i) symbols[i] = s->symbols[i].minimum;
  for (;;) {
    uint64_t bytes = 0;
    if (!s->shape || !s->shape(symbols, -1, NULL)) {
      for (int32_t i = 0; i < s->num_inputs; ++i) bytes += slot_bytes(&s->inputs[i], symbols);
      for (int32_t i = 0; i < s->num_outputs; ++i) {
        wick_aot_slot slot = s->outputs[i];
        if (s->shape) s->shape(symbols, i, slot.sizes);
        bytes += slot_bytes(&slot, NULL);
      }
    }
    if (bytes > most) most = bytes;
    int32_t i = s->num_symbols - 1;
    while (i >= 0 && symbols[i] + s->symbols[i].step > s->symbols[i].maximum) {
      symbols[i] = s->symbols[i].minimum;
      --i;
    }
    if (i < 0) return most;
    symbols[i] += s->symbols[i].step;
  }
}

static void drop_graphs(const wick_cuda_state* c) {
  for (int i = 0; c->graphs && i < kGraphs; ++i) {
    if (c->graphs[i].executable) c->driver->cuGraphExecDestroy(c->graphs[i].executable);
    c->graphs[i].executable = NULL;
    c->graphs[i].signature = -1;
  }
}

int wick_cuda_reserve(wick_aot_state* state, size_t bytes) {
  wick_cuda_state* c = state_of(state);
  if (bytes <= c->workspace_bytes) return WICK_AOT_OK;
  if (c->captured) {
    return wick_cuda_fail(state, WICK_AOT_ARGUMENT,
                          "the stream is captured, and sizes are new that need more memory for "
                          "libraries (%zu bytes); call the model with them once before",
                          bytes);
  }
  if (c->workspace) {
    /* Kernels may use it still, and graphs have its address. */
    const int code = wick_cuda_check(state, c->driver->cuStreamSynchronize(c->given), "waiting");
    if (code != WICK_AOT_OK) return code;
    drop_graphs(c);
    if (c->workspace_is_captured) {
      wick_cuda_address* const kept = (wick_cuda_address*)realloc(
          c->workspaces, (c->num_workspaces + 1) * sizeof *c->workspaces);
      if (!kept) return wick_cuda_fail(state, WICK_AOT_MEMORY, "memory is exhausted");
      kept[c->num_workspaces++] = c->workspace;
      c->workspaces = kept;
    } else {
      c->driver->cuMemFree_v2(c->workspace);
    }
    c->workspace_is_captured = 0;
    c->workspace = 0;
    c->workspace_bytes = 0;
  }
  const int code = wick_cuda_check(state, c->driver->cuMemAlloc_v2(&c->workspace, bytes),
                                   "memory for libraries");
  if (code == WICK_AOT_OK) c->workspace_bytes = bytes;
  return code;
}

static int take_memory(wick_aot_state* state) {
  wick_cuda_state* c = state_of(state);
  const wick_aot_model* model = state->model;
  uint64_t staging = 0;
  size_t most = 1;
  for (int32_t i = 0; i < model->num_signatures; ++i) {
    const wick_aot_signature* s = &model->signatures[i];
    const uint64_t bytes = staging_bytes(s);
    const size_t tensors = (size_t)s->num_inputs + (size_t)s->num_outputs;
    if (bytes > staging) staging = bytes;
    if (tensors > most) most = tensors;
  }
  c->staging = aligned(model->cuda->memory_bytes);
  c->tensors = (wick_aot_tensor*)calloc(most, sizeof *c->tensors);
  c->graphs = (wick_cuda_graph*)calloc(kGraphs, sizeof *c->graphs);
  if (!c->tensors || !c->graphs) {
    return wick_cuda_fail(state, WICK_AOT_MEMORY, "memory is exhausted");
  }
  for (int i = 0; i < kGraphs; ++i) {
    c->graphs[i].signature = -1;
    c->graphs[i].addresses = (void**)calloc(most, sizeof(void*));
    if (!c->graphs[i].addresses) {
      return wick_cuda_fail(state, WICK_AOT_MEMORY, "memory is exhausted");
    }
  }
  int code = WICK_AOT_OK;
  if (c->staging + staging > 0) {
    code =
        wick_cuda_check(state, c->driver->cuMemAlloc_v2(&c->memory, (size_t)(c->staging + staging)),
                        "memory for the model");
  }
  void* flag = NULL;
  if (code == WICK_AOT_OK) {
    code = wick_cuda_check(state, c->driver->cuMemHostAlloc(&flag, sizeof *c->flag, kPortable),
                           "memory for messages");
  }
  c->flag = (int64_t*)flag;
  if (c->flag) *c->flag = 0;
  if (code == WICK_AOT_OK) {
    code = wick_cuda_check(state, c->driver->cuStreamCreate(&c->own, 0), "making a stream");
  }
  if (code == WICK_AOT_OK) {
    code = wick_cuda_check(state, c->driver->cuStreamCreate(&c->capture, kOwnStream),
                           "making a stream");
  }
  c->given = c->stream = c->own;
  return code;
}

/* ---- states ---- */

static int init_state(wick_aot_state* state) {
  wick_cuda_state* c = (wick_cuda_state*)calloc(1, sizeof *c);
  if (!c) return wick_cuda_fail(state, WICK_AOT_MEMORY, "memory is exhausted");
  state->library = c;
  pthread_mutex_lock(&mutex);
  int code = open_driver(state);
  c->driver = &found_driver;
  if (code == WICK_AOT_OK) code = choose_device(state);
  void* before = NULL;
  const int inside = code == WICK_AOT_OK;
  if (inside) code = enter(state, &before);
  if (code == WICK_AOT_OK) code = share(state);
  pthread_mutex_unlock(&mutex);
  if (code == WICK_AOT_OK) code = take_memory(state);
  if (code == WICK_AOT_OK) code = wick_cuda_open_libraries(state);
  if (code == WICK_AOT_OK) code = wick_cuda_prepare(state);
  if (inside) leave(state, before);
  return code;
}

static void free_state(wick_aot_state* state) {
  wick_cuda_state* c = state_of(state);
  if (!c) return;
  if (c->context) {
    void* before = c->context;
    c->driver->cuCtxGetCurrent(&before);
    if (before != c->context) c->driver->cuCtxSetCurrent(c->context);
    /* Rather than on the caller's stream, which may be gone. */
    c->driver->cuCtxSynchronize();
    drop_graphs(c);
    wick_cuda_close_libraries(state);
    if (c->own) c->driver->cuStreamDestroy_v2(c->own);
    if (c->capture) c->driver->cuStreamDestroy_v2(c->capture);
    if (c->workspace) c->driver->cuMemFree_v2(c->workspace);
    for (size_t i = 0; i < c->num_workspaces; ++i) c->driver->cuMemFree_v2(c->workspaces[i]);
    if (c->memory) c->driver->cuMemFree_v2(c->memory);
    if (c->flag) c->driver->cuMemFreeHost(c->flag);
    pthread_mutex_lock(&mutex);
    if (c->shared) drop_shared(c->shared);
    pthread_mutex_unlock(&mutex);
    if (before != c->context) c->driver->cuCtxSetCurrent(before);
    c->driver->cuDevicePrimaryCtxRelease_v2(c->device);
  }
  for (int i = 0; c->graphs && i < kGraphs; ++i) free(c->graphs[i].addresses);
  free(c->workspaces);
  free(c->graphs);
  free(c->tensors);
  free(c);
  state->library = NULL;
}

const struct wick_aot_library wick_aot_cuda = {init_state, free_state};

static int is_ready(wick_aot_state* state) {
  if (state->model && state->model->cuda && state->library) return WICK_AOT_OK;
  snprintf(state->error, sizeof state->error,
           "the state is not one of a model for CUDA that is ready");
  return WICK_AOT_ARGUMENT;
}

int wick_aot_cuda_set_stream(wick_aot_state* state, void* stream) {
  const int code = is_ready(state);
  if (code != WICK_AOT_OK) return code;
  wick_cuda_state* c = state_of(state);
  c->given = c->stream = stream ? stream : c->own;
  return WICK_AOT_OK;
}

int wick_aot_cuda_set_graphs(wick_aot_state* state, int on) {
  const int code = is_ready(state);
  if (code == WICK_AOT_OK) state_of(state)->no_graphs = !on;
  return code;
}

/* What a kernel found wrong, in this call or one before. */
static int complaint(wick_aot_state* state) {
  wick_cuda_state* c = state_of(state);
  const wick_aot_cuda_program* program = program_of(state);
  const int64_t number = *(volatile int64_t*)c->flag;
  if (number == 0) return WICK_AOT_OK;
  *c->flag = 0;
  return wick_cuda_fail(state, WICK_AOT_RAISED, "%s",
                        number > 0 && number <= program->num_complaints
                            ? program->complaints[number - 1]
                            : "an index is out of range");
}

int wick_aot_cuda_wait(wick_aot_state* state) {
  void* before = NULL;
  int code = is_ready(state);
  if (code != WICK_AOT_OK) return code;
  const wick_cuda_state* c = state_of(state);
  code = enter(state, &before);
  if (code != WICK_AOT_OK) return code;
  code = wick_cuda_check(state, c->driver->cuStreamSynchronize(c->given), "waiting");
  if (code == WICK_AOT_OK) code = complaint(state);
  leave(state, before);
  return code;
}

/* ---- for generated code ---- */

unsigned char* wick_aot_cuda_memory(const wick_aot_state* state) {
  return (unsigned char*)(uintptr_t)state_of(state)->memory;
}
const unsigned char* wick_aot_cuda_weights(const wick_aot_state* state) {
  return (const unsigned char*)(uintptr_t)state_of(state)->shared->weights;
}
int64_t wick_aot_cuda_flag(const wick_aot_state* state) {
  return (int64_t)(intptr_t)state_of(state)->flag;
}

int wick_aot_cuda_launch(wick_aot_state* state, int32_t kernel, unsigned grid, unsigned block,
                         const int64_t* words) {
  const wick_cuda_state* c = state_of(state);
  void* parameters[1];
  memcpy(&parameters[0], &words, sizeof words);
  const int result = c->driver->cuLaunchKernel(c->shared->functions[kernel], grid, 1, 1, block, 1,
                                               1, 0, c->stream, parameters, NULL);
  return result == 0 ? WICK_AOT_OK
                     : wick_cuda_check(state, result, program_of(state)->kernels[kernel]);
}

static wick_cuda_address address_of(const void* pointer) {
  return (wick_cuda_address)(uintptr_t)pointer;
}

int wick_aot_cuda_copy(wick_aot_state* state, void* to, const void* from, size_t bytes) {
  const wick_cuda_state* c = state_of(state);
  return wick_cuda_check(
      state, c->driver->cuMemcpyDtoDAsync_v2(address_of(to), address_of(from), bytes, c->stream),
      "copying");
}
int wick_aot_cuda_clear(wick_aot_state* state, void* to, size_t bytes) {
  const wick_cuda_state* c = state_of(state);
  return wick_cuda_check(state, c->driver->cuMemsetD8Async(address_of(to), 0, bytes, c->stream),
                         "clearing memory");
}
int wick_aot_cuda_set(wick_aot_state* state, int64_t* to, int64_t value) {
  const wick_cuda_state* c = state_of(state);
  const uint64_t bits = (uint64_t)value;
  const wick_cuda_address at = address_of(to);
  int result = c->driver->cuMemsetD32Async(at, (unsigned)bits, 1, c->stream);
  if (result == 0)
    result = c->driver->cuMemsetD32Async(at + 4, (unsigned)(bits >> 32), 1, c->stream);
  return wick_cuda_check(state, result, "setting a number");
}
int wick_aot_cuda_read(wick_aot_state* state, void* to, const void* from, size_t bytes) {
  const wick_cuda_state* c = state_of(state);
  const int code = wick_cuda_check(
      state, c->driver->cuMemcpyDtoHAsync_v2(to, address_of(from), bytes, c->stream), "reading");
  if (code != WICK_AOT_OK) return code;
  const int waited = wick_cuda_check(state, c->driver->cuStreamSynchronize(c->stream), "waiting");
  /* What was read is nothing to go on with when something was wrong. */
  return waited == WICK_AOT_OK ? complaint(state) : waited;
}
int wick_aot_cuda_write(wick_aot_state* state, void* to, const void* from, size_t bytes) {
  const wick_cuda_state* c = state_of(state);
  const int code = wick_cuda_check(
      state, c->driver->cuMemcpyHtoDAsync_v2(address_of(to), from, bytes, c->stream), "writing");
  if (code != WICK_AOT_OK) return code;
  return wick_cuda_check(state, c->driver->cuStreamSynchronize(c->stream), "waiting");
}

/* ---- calls ---- */

/* Records the call, and makes a graph of it. Without one, and without an error, it cannot be recorded. */
static int record_call(wick_aot_state* state, wick_cuda_graph* graph, const wick_aot_signature* s,
                       const int64_t* sizes, wick_aot_cuda_function function) {
  wick_cuda_state* c = state_of(state);
  void* recorded = NULL;
  if (c->driver->cuStreamBeginCapture_v2(c->capture, kThreadCapture) != 0) return WICK_AOT_OK;
  c->stream = c->capture;
  c->capturing = 1;
  const int code = function(state, c->tensors, c->tensors + s->num_inputs, sizes);
  c->capturing = 0;
  c->stream = c->given;
  const int ended = c->driver->cuStreamEndCapture(c->capture, &recorded);
  if (ended == 0 && recorded && code == WICK_AOT_OK) {
    if (c->driver->cuGraphInstantiateWithFlags(&graph->executable, recorded, 0) != 0) {
      graph->executable = NULL;
    }
  }
  if (recorded) c->driver->cuGraphDestroy(recorded);
  state->error[0] = '\0';
  return WICK_AOT_OK;
}

static wick_cuda_graph* find_graph(const wick_aot_state* state, int32_t signature,
                                   const int64_t* sizes) {
  const wick_cuda_state* c = state_of(state);
  const wick_aot_signature* s = &state->model->signatures[signature];
  const int32_t count = s->num_inputs + s->num_outputs;
  for (int i = 0; i < kGraphs; ++i) {
    wick_cuda_graph* graph = &c->graphs[i];
    int same = graph->signature == signature;
    for (int32_t d = 0; same && d < s->num_symbols; ++d) same = graph->sizes[d] == sizes[d];
    for (int32_t t = 0; same && t < count; ++t) same = graph->addresses[t] == c->tensors[t].data;
    if (same) return graph;
  }
  return NULL;
}

/* All tensors are on the device. `records`: whether it may become a graph. */
static int run_call(wick_aot_state* state, int32_t signature, const int64_t* sizes,
                    wick_aot_cuda_function function, int records) {
  wick_cuda_state* c = state_of(state);
  const wick_aot_signature* s = &state->model->signatures[signature];
  if (records && !program_of(state)->asks && !c->no_graphs) {
    wick_cuda_graph* graph = find_graph(state, signature, sizes);
    if (graph && !graph->executable) {
      const int code = record_call(state, graph, s, sizes, function);
      if (code != WICK_AOT_OK) return code;
      if (!graph->executable) c->no_graphs = 1;
    }
    if (graph && graph->executable) {
      return wick_cuda_check(state, c->driver->cuGraphLaunch(graph->executable, c->given),
                             "launching the model");
    }
    if (!graph) {
      graph = &c->graphs[c->next_graph++ % kGraphs];
      if (graph->executable) c->driver->cuGraphExecDestroy(graph->executable);
      graph->executable = NULL;
      graph->signature = signature;
      for (int32_t d = 0; d < s->num_symbols; ++d) graph->sizes[d] = sizes[d];
      for (int32_t t = 0; t < s->num_inputs + s->num_outputs; ++t) {
        graph->addresses[t] = c->tensors[t].data;
      }
    }
  }
  return function(state, c->tensors, c->tensors + s->num_inputs, sizes);
}

/* Whether the tensor is in the device's memory: 1, or in the host's: 0; below zero after an error. */
static int place_of(wick_aot_state* state, const wick_aot_tensor* tensor, const char* what,
                    int32_t number, const char* name) {
  const wick_cuda_state* c = state_of(state);
  unsigned type = 0;
  int device = -1;
  int attributes[2] = {kMemoryType, kDeviceOrdinal};
  void* values[2] = {&type, &device};
  if (c->driver->cuPointerGetAttributes(2, attributes, values, address_of(tensor->data)) != 0 ||
      (type != kDeviceMemory && type != kUnifiedMemory)) {
    return 0;
  }
  if (device != c->device) {
    wick_cuda_fail(state, WICK_AOT_ARGUMENT,
                   "%s %d (%s): expected memory of device %d, got that of device %d", what,
                   (int)number, name, c->device, device);
    return -1;
  }
  if ((uintptr_t)tensor->data % kTensorAlignment != 0) {
    wick_cuda_fail(state, WICK_AOT_ARGUMENT,
                   "%s %d (%s): expected an address that %d divides, got %p", what, (int)number,
                   name, kTensorAlignment, tensor->data);
    return -1;
  }
  return 1;
}

static int call_inside(wick_aot_state* state, int32_t signature, const int64_t* sizes,
                       const wick_aot_tensor* inputs, wick_aot_tensor* outputs,
                       wick_aot_cuda_function function) {
  wick_cuda_state* c = state_of(state);
  const wick_aot_signature* s = &state->model->signatures[signature];
  uint64_t staged = c->staging;
  int of_host = 0, captured = 0;
  const int told = c->driver->cuStreamIsCapturing(c->given, &captured) == 0;
  int code = complaint(state);
  if (code != WICK_AOT_OK) return code;
  c->captured = told && captured != 0;
  if (c->captured) c->workspace_is_captured = 1;
  if (c->captured && program_of(state)->asks) {
    return wick_cuda_fail(state, WICK_AOT_ARGUMENT,
                          "the stream is captured, and the host looks at elements to go on, which "
                          "no graph does");
  }
  for (int32_t i = 0; i < s->num_inputs + s->num_outputs; ++i) {
    const int is_input = i < s->num_inputs;
    const int32_t number = is_input ? i : i - s->num_inputs;
    const wick_aot_tensor* given = is_input ? &inputs[number] : &outputs[number];
    const size_t bytes = wick_aot_tensor_bytes(given);
    c->tensors[i] = *given;
    if (bytes == 0) continue;
    const int place = place_of(state, given, is_input ? "input" : "output", number,
                               is_input ? s->inputs[number].name : s->outputs[number].name);
    if (place < 0) return WICK_AOT_ARGUMENT;
    if (place == 1) continue;
    if (c->captured) {
      return wick_cuda_fail(
          state, WICK_AOT_ARGUMENT,
          "%s %d (%s): the stream is captured, so expected memory of the device, got that of the "
          "host",
          is_input ? "input" : "output", (int)number,
          is_input ? s->inputs[number].name : s->outputs[number].name);
    }
    of_host = 1;
    c->tensors[i].data = wick_aot_cuda_memory(state) + staged;
    staged += aligned(bytes);
    if (!is_input) continue;
    code = wick_cuda_check(state,
                           c->driver->cuMemcpyHtoDAsync_v2(address_of(c->tensors[i].data),
                                                           given->data, bytes, c->given),
                           "copying an input");
    if (code != WICK_AOT_OK) return code;
  }
  code = run_call(state, signature, sizes, function, told && !captured);
  for (int32_t i = 0; code == WICK_AOT_OK && i < s->num_outputs; ++i) {
    const wick_aot_tensor* const made = &c->tensors[s->num_inputs + i];
    const size_t bytes = wick_aot_tensor_bytes(made);
    /* Elements may have decided them. */
    memcpy(outputs[i].sizes, made->sizes, sizeof made->sizes);
    if (made->data == outputs[i].data || bytes == 0) continue;
    code = wick_cuda_check(
        state,
        c->driver->cuMemcpyDtoHAsync_v2(outputs[i].data, address_of(made->data), bytes, c->given),
        "copying an output");
  }
  if (of_host) {
    const int waited = wick_cuda_check(state, c->driver->cuStreamSynchronize(c->given), "waiting");
    if (code == WICK_AOT_OK) code = waited;
    if (code == WICK_AOT_OK) code = complaint(state);
  }
  return code;
}

int wick_aot_cuda_call(wick_aot_state* state, int32_t signature, const int64_t* sizes,
                       const wick_aot_tensor* inputs, wick_aot_tensor* outputs,
                       wick_aot_cuda_function function) {
  void* before = NULL;
  int code = is_ready(state);
  if (code == WICK_AOT_OK) code = enter(state, &before);
  if (code != WICK_AOT_OK) return code;
  code = call_inside(state, signature, sizes, inputs, outputs, function);
  leave(state, before);
  return code;
}
