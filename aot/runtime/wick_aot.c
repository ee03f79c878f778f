#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "wick_aot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wick_aot_onednn.h"

/* The beginning of a file of weights, which fill the rest of it from kHeader on. */
static const char kMagic[8] = {'W', 'I', 'C', 'K', 'A', 'O', 'T', '\n'};
enum { kHeader = 64, kAlignment = 64 };
typedef struct {
  char magic[8];
  uint32_t version;
  uint32_t header;
  uint64_t fingerprint;
  uint64_t bytes;
} header;

static int fail(wick_aot_state* state, int code, const char* format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(state->error, sizeof state->error, format, values);
  va_end(values);
  return code;
}

int wick_aot_fail(wick_aot_state* state, int code, const char* message) {
  return fail(state, code, "%s: %s", state->model->name, message);
}

const char* wick_aot_error(const wick_aot_state* state) {
  return state->error;
}

static const char* dtype_name(int32_t dtype) {
  switch (dtype) {
    case WICK_AOT_UINT8:
      return "uint8";
    case WICK_AOT_INT8:
      return "int8";
    case WICK_AOT_INT16:
      return "int16";
    case WICK_AOT_INT32:
      return "int32";
    case WICK_AOT_INT64:
      return "int64";
    case WICK_AOT_FLOAT16:
      return "float16";
    case WICK_AOT_FLOAT32:
      return "float32";
    case WICK_AOT_FLOAT64:
      return "float64";
    case WICK_AOT_BOOL:
      return "bool";
    case WICK_AOT_BFLOAT16:
      return "bfloat16";
    default:
      return "an unknown dtype";
  }
}

static size_t item_bytes(int32_t dtype) {
  switch (dtype) {
    case WICK_AOT_INT16:
    case WICK_AOT_FLOAT16:
    case WICK_AOT_BFLOAT16:
      return 2;
    case WICK_AOT_INT32:
    case WICK_AOT_FLOAT32:
      return 4;
    case WICK_AOT_INT64:
    case WICK_AOT_FLOAT64:
      return 8;
    default:
      return 1;
  }
}

size_t wick_aot_bytes(const wick_aot_slot* slot) {
  size_t bytes = item_bytes(slot->dtype);
  for (int32_t d = 0; d < slot->rank; ++d) bytes *= (size_t)slot->sizes[d];
  return bytes;
}

/* "float32[1, 3]" */
static void describe(char* text, size_t room, int32_t dtype, int32_t rank, const int64_t* sizes) {
  size_t used = (size_t)snprintf(text, room, "%s[", dtype_name(dtype));
  for (int32_t d = 0; d < rank && d < WICK_AOT_MAX_RANK && used < room; ++d) {
    used += (size_t)snprintf(text + used, room - used, "%s%lld", d == 0 ? "" : ", ",
                             (long long)sizes[d]);
  }
  if (used < room) snprintf(text + used, room - used, "]");
}

static int same_slot(const wick_aot_slot* slot, const wick_aot_tensor* tensor) {
  int same = tensor->dtype == slot->dtype && tensor->rank == slot->rank;
  for (int32_t d = 0; same && d < slot->rank; ++d) same = tensor->sizes[d] == slot->sizes[d];
  return same;
}

static int check_slot(wick_aot_state* state, const char* what, int32_t number,
                      const wick_aot_slot* slot, const wick_aot_tensor* tensor) {
  if (!same_slot(slot, tensor)) {
    char expected[160], found[160];
    describe(expected, sizeof expected, slot->dtype, slot->rank, slot->sizes);
    describe(found, sizeof found, tensor->dtype, tensor->rank, tensor->sizes);
    return fail(state, WICK_AOT_ARGUMENT, "%s: %s %d (%s): expected %s, got %s", state->model->name,
                what, (int)number, slot->name, expected, found);
  }
  if (!tensor->data && wick_aot_bytes(slot) > 0) {
    return fail(state, WICK_AOT_ARGUMENT, "%s: %s %d (%s): expected memory, got null",
                state->model->name, what, (int)number, slot->name);
  }
  return WICK_AOT_OK;
}

static int same_inputs(const wick_aot_signature* s, const wick_aot_tensor* inputs) {
  for (int32_t i = 0; i < s->num_inputs; ++i) {
    if (!same_slot(&s->inputs[i], &inputs[i])) return 0;
  }
  return 1;
}

int wick_aot_select(wick_aot_state* state, int32_t first, int32_t count,
                    const wick_aot_tensor* inputs, const wick_aot_tensor* outputs,
                    int32_t* signature) {
  const wick_aot_model* model = state->model;
  const wick_aot_signature* s = &model->signatures[first];
  if ((s->num_inputs > 0 && !inputs) || (s->num_outputs > 0 && !outputs)) {
    return fail(state, WICK_AOT_ARGUMENT, "%s: expected %d inputs and %d outputs, got null",
                model->name, (int)s->num_inputs, (int)s->num_outputs);
  }
  int32_t which = 0;
  while (which < count && !same_inputs(&s[which], inputs)) ++which;
  if (which == count && count > 1) {
    return fail(state, WICK_AOT_ARGUMENT, "%s: none of the %d signatures of %s has such inputs",
                model->name, (int)count, s->method);
  }
  if (which == count) which = 0; /* The message tells what does not fit. */
  s += which;
  for (int32_t i = 0; i < s->num_inputs; ++i) {
    const int code = check_slot(state, "input", i, &s->inputs[i], &inputs[i]);
    if (code != WICK_AOT_OK) return code;
  }
  for (int32_t i = 0; i < s->num_outputs; ++i) {
    const int code = check_slot(state, "output", i, &s->outputs[i], &outputs[i]);
    if (code != WICK_AOT_OK) return code;
  }
  *signature = first + which;
  return WICK_AOT_OK;
}

static int map_weights(wick_aot_state* state, const char* path) {
  const wick_aot_model* model = state->model;
  if (!path) {
    return fail(state, WICK_AOT_WEIGHTS, "%s: expected the path of the weights, got null",
                model->name);
  }
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return fail(state, WICK_AOT_WEIGHTS, "%s: %s: %s", model->name, path, strerror(errno));
  }
  struct stat about;
  void* mapping = MAP_FAILED;
  const int known = fstat(file, &about) == 0 && S_ISREG(about.st_mode);
  const size_t size = known ? (size_t)about.st_size : 0;
  if (size >= kHeader) mapping = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (size < kHeader) {
    return fail(state, WICK_AOT_WEIGHTS, "%s: %s is no file of weights", model->name, path);
  }
  if (mapping == MAP_FAILED) {
    return fail(state, WICK_AOT_MEMORY, "%s: %s cannot be mapped: %s", model->name, path,
                strerror(errno));
  }
  state->mapping = mapping;
  state->mapping_bytes = size;
  header head;
  memcpy(&head, mapping, sizeof head);
  if (memcmp(head.magic, kMagic, sizeof kMagic) != 0) {
    return fail(state, WICK_AOT_WEIGHTS, "%s: %s is no file of weights", model->name, path);
  }
  if (head.version != WICK_AOT_VERSION || head.header != kHeader) {
    return fail(state, WICK_AOT_WEIGHTS,
                "%s: %s has version %u of the format, this program reads version %d", model->name,
                path, (unsigned)head.version, WICK_AOT_VERSION);
  }
  if (head.fingerprint != model->fingerprint) {
    return fail(state, WICK_AOT_WEIGHTS,
                "%s: %s holds the weights of another model, or of another build of this one",
                model->name, path);
  }
  if (head.bytes != model->weights_bytes || size - kHeader != head.bytes) {
    return fail(state, WICK_AOT_WEIGHTS, "%s: %s is cut short: expected %llu bytes, got %llu",
                model->name, path, (unsigned long long)model->weights_bytes,
                (unsigned long long)(size - kHeader));
  }
  state->weights = (const unsigned char*)mapping + kHeader;
  return WICK_AOT_OK;
}

int wick_aot_init(const wick_aot_model* model, wick_aot_state* state, const char* weights) {
  memset(state, 0, sizeof *state);
  state->model = model;
  int code = WICK_AOT_OK;
  if (model->embedded) {
    state->weights = (const unsigned char*)model->embedded;
  } else if (model->weights_bytes > 0) {
    code = map_weights(state, weights);
  }
  if (code == WICK_AOT_OK && model->memory_bytes > 0) {
    void* memory = NULL;
    if (posix_memalign(&memory, kAlignment, (size_t)model->memory_bytes) != 0) {
      code = fail(state, WICK_AOT_MEMORY, "%s: %llu bytes of memory cannot be had", model->name,
                  (unsigned long long)model->memory_bytes);
    } else {
      state->memory = (unsigned char*)memory;
    }
  }
  if (code == WICK_AOT_OK && model->library) code = model->library->init(state);
  if (code != WICK_AOT_OK) {
    char error[sizeof state->error];
    memcpy(error, state->error, sizeof error);
    wick_aot_free(state);
    memcpy(state->error, error, sizeof error);
  }
  return code;
}

void wick_aot_free(wick_aot_state* state) {
  if (!state->model) return;
  if (state->model->library) state->model->library->free(state);
  if (state->mapping) munmap(state->mapping, state->mapping_bytes);
  free(state->memory);
  const wick_aot_model* model = state->model;
  memset(state, 0, sizeof *state);
  state->model = model; /* for messages */
}
