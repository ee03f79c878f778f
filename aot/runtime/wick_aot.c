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

int wick_aot_size(wick_aot_state* state, const char* by, int64_t most, int64_t size) {
  if (size >= 0 && size <= most) return WICK_AOT_OK;
  return fail(state, WICK_AOT_RAISED, "%s: %s: expected a size from 0 to %lld, got %lld",
              state->model->name, by, (long long)most, (long long)size);
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
    case WICK_AOT_COMPLEX64:
      return "complex64";
    case WICK_AOT_COMPLEX128:
      return "complex128";
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
    case WICK_AOT_COMPLEX64:
      return 8;
    case WICK_AOT_COMPLEX128:
      return 16;
    default:
      return 1;
  }
}

static size_t bytes_of(int32_t dtype, int32_t rank, const int64_t* sizes) {
  size_t bytes = item_bytes(dtype);
  for (int32_t d = 0; d < rank; ++d) bytes *= (size_t)sizes[d];
  return bytes;
}

size_t wick_aot_bytes(const wick_aot_slot* slot) {
  return bytes_of(slot->dtype, slot->rank, slot->sizes);
}

size_t wick_aot_tensor_bytes(const wick_aot_tensor* tensor) {
  return bytes_of(tensor->dtype, tensor->rank, tensor->sizes);
}

/* A symbol of which nothing is known yet. */
enum { kUnknown = -1 };

/* "float32[1, 3]", "float32[N, 3]", "float32[N=2, 3]" when N is known. */
static void describe(char* text, size_t room, int32_t dtype, int32_t rank, const int64_t* sizes,
                     const wick_aot_symbol* names, const int64_t* symbols) {
  size_t used = (size_t)snprintf(text, room, "%s[", dtype_name(dtype));
  for (int32_t d = 0; d < rank && d < WICK_AOT_MAX_RANK && used < room; ++d) {
    const char* comma = d == 0 ? "" : ", ";
    const int64_t symbol = names && sizes[d] < 0 ? -1 - sizes[d] : -1;
    int more;
    if (symbol < 0) {
      more = snprintf(text + used, room - used, "%s%lld", comma, (long long)sizes[d]);
    } else if (symbols[symbol] == kUnknown) {
      more = snprintf(text + used, room - used, "%s%s", comma, names[symbol].name);
    } else {
      more = snprintf(text + used, room - used, "%s%s=%lld", comma, names[symbol].name,
                      (long long)symbols[symbol]);
    }
    used += (size_t)more;
  }
  if (used < room) snprintf(text + used, room - used, "]");
}

/* Whether the tensor is as the slot says; symbols that are not known yet get its sizes. */
static int same_slot(const wick_aot_slot* slot, const wick_aot_tensor* tensor, int64_t* symbols) {
  if (tensor->dtype != slot->dtype || tensor->rank != slot->rank) return 0;
  for (int32_t d = 0; d < slot->rank; ++d) {
    const int64_t size = tensor->sizes[d];
    if (slot->sizes[d] >= 0) {
      if (size != slot->sizes[d]) return 0;
      continue;
    }
    int64_t* symbol = &symbols[-1 - slot->sizes[d]];
    if (size < 0 || (*symbol != kUnknown && *symbol != size)) return 0;
    *symbol = size;
  }
  return 1;
}

static int differs(wick_aot_state* state, const char* what, int32_t number,
                   const wick_aot_slot* slot, const wick_aot_tensor* tensor,
                   const wick_aot_symbol* names, const int64_t* symbols) {
  char expected[160], found[160];
  describe(expected, sizeof expected, slot->dtype, slot->rank, slot->sizes, names, symbols);
  describe(found, sizeof found, tensor->dtype, tensor->rank, tensor->sizes, NULL, NULL);
  return fail(state, WICK_AOT_ARGUMENT, "%s: %s %d (%s): expected %s, got %s", state->model->name,
              what, (int)number, slot->name, expected, found);
}

static int no_memory(wick_aot_state* state, const char* what, int32_t number, const char* name) {
  return fail(state, WICK_AOT_ARGUMENT, "%s: %s %d (%s): expected memory, got null",
              state->model->name, what, (int)number, name);
}

static void forget(int64_t* symbols) {
  for (int32_t i = 0; i < WICK_AOT_MAX_SYMBOLS; ++i) symbols[i] = kUnknown;
}

static int in_range(const wick_aot_symbol* symbol, int64_t size) {
  return size >= symbol->minimum && size <= symbol->maximum &&
         (size - symbol->minimum) % symbol->step == 0;
}

/* Whether the inputs fit; the sizes of symbols. */
static int same_inputs(const wick_aot_signature* s, const wick_aot_tensor* inputs,
                       int64_t* symbols) {
  forget(symbols);
  for (int32_t i = 0; i < s->num_inputs; ++i) {
    if (!same_slot(&s->inputs[i], &inputs[i], symbols)) return 0;
  }
  for (int32_t i = 0; i < s->num_symbols; ++i) {
    if (symbols[i] == kUnknown) symbols[i] = s->symbols[i].minimum;
    if (!in_range(&s->symbols[i], symbols[i])) return 0;
  }
  return 1;
}

/* Says why the inputs do not fit. */
static int explain(wick_aot_state* state, const wick_aot_signature* s,
                   const wick_aot_tensor* inputs, int64_t* symbols) {
  forget(symbols);
  for (int32_t i = 0; i < s->num_inputs; ++i) {
    int64_t before[WICK_AOT_MAX_SYMBOLS];
    memcpy(before, symbols, sizeof before);
    if (!same_slot(&s->inputs[i], &inputs[i], symbols)) {
      return differs(state, "input", i, &s->inputs[i], &inputs[i], s->symbols, before);
    }
  }
  for (int32_t i = 0; i < s->num_symbols; ++i) {
    const wick_aot_symbol* symbol = &s->symbols[i];
    if (symbols[i] == kUnknown || in_range(symbol, symbols[i])) continue;
    char steps[40] = "";
    if (symbol->step != 1) snprintf(steps, sizeof steps, " by %lld", (long long)symbol->step);
    return fail(state, WICK_AOT_ARGUMENT,
                "%s: expected %s from %lld to %lld%s, which is what %s was compiled for; got %lld",
                state->model->name, symbol->name, (long long)symbol->minimum,
                (long long)symbol->maximum, steps, s->method, (long long)symbols[i]);
  }
  return fail(state, WICK_AOT_ARGUMENT, "%s: the inputs do not fit", state->model->name);
}

/* The signature of the inputs and the sizes of its symbols. */
static int find_signature(wick_aot_state* state, int32_t first, int32_t count,
                          const wick_aot_tensor* inputs, const wick_aot_tensor* outputs,
                          int32_t* signature, int64_t* symbols) {
  const wick_aot_model* model = state->model;
  const wick_aot_signature* s = &model->signatures[first];
  if ((s->num_inputs > 0 && !inputs) || (s->num_outputs > 0 && !outputs)) {
    return fail(state, WICK_AOT_ARGUMENT, "%s: expected %d inputs and %d outputs, got null",
                model->name, (int)s->num_inputs, (int)s->num_outputs);
  }
  int32_t which = 0;
  while (which < count && !same_inputs(&s[which], inputs, symbols)) ++which;
  if (which == count && count > 1) {
    return fail(state, WICK_AOT_ARGUMENT, "%s: none of the %d signatures of %s has such inputs",
                model->name, (int)count, s->method);
  }
  if (which == count) return explain(state, s, inputs, symbols);
  s += which;
  const char* raised = s->shape ? s->shape(symbols, -1, NULL) : NULL;
  if (raised) return wick_aot_fail(state, WICK_AOT_RAISED, raised);
  *signature = first + which;
  return WICK_AOT_OK;
}

/* What output `number` must be. */
static wick_aot_slot output_slot(const wick_aot_signature* s, int32_t number,
                                 const int64_t* symbols) {
  wick_aot_slot slot = s->outputs[number];
  if (s->shape) s->shape(symbols, number, slot.sizes);
  return slot;
}

int wick_aot_select(wick_aot_state* state, int32_t first, int32_t count,
                    const wick_aot_tensor* inputs, const wick_aot_tensor* outputs,
                    int32_t* signature, int64_t* symbols) {
  const int code = find_signature(state, first, count, inputs, outputs, signature, symbols);
  if (code != WICK_AOT_OK) return code;
  const wick_aot_signature* s = &state->model->signatures[*signature];
  for (int32_t i = 0; i < s->num_inputs; ++i) {
    if (!inputs[i].data && wick_aot_tensor_bytes(&inputs[i]) > 0) {
      return no_memory(state, "input", i, s->inputs[i].name);
    }
  }
  for (int32_t i = 0; i < s->num_outputs; ++i) {
    const wick_aot_slot slot = output_slot(s, i, symbols);
    if (!same_slot(&slot, &outputs[i], symbols)) {
      return differs(state, "output", i, &slot, &outputs[i], NULL, NULL);
    }
    if (!outputs[i].data && wick_aot_bytes(&slot) > 0) {
      return no_memory(state, "output", i, slot.name);
    }
  }
  return WICK_AOT_OK;
}

int wick_aot_outputs(wick_aot_state* state, int32_t first, int32_t count,
                     const wick_aot_tensor* inputs, wick_aot_tensor* outputs) {
  int32_t signature = 0;
  int64_t symbols[WICK_AOT_MAX_SYMBOLS];
  const int code = find_signature(state, first, count, inputs, outputs, &signature, symbols);
  if (code != WICK_AOT_OK) return code;
  const wick_aot_signature* s = &state->model->signatures[signature];
  for (int32_t i = 0; i < s->num_outputs; ++i) {
    const wick_aot_slot slot = output_slot(s, i, symbols);
    outputs[i].dtype = slot.dtype;
    outputs[i].rank = slot.rank;
    memcpy(outputs[i].sizes, slot.sizes, sizeof slot.sizes);
  }
  return WICK_AOT_OK;
}

static int map_weights(wick_aot_state* state, const char* path) {
  const wick_aot_model* model = state->model;
  if (!path) {
    return fail(state, WICK_AOT_WEIGHTS, "%s: expected the path of the weights, got null",
                model->name);
  }
  /* A pipe is refused, not waited for. */
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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
  if (head.version != WICK_AOT_VERSION) {
    return fail(state, WICK_AOT_WEIGHTS,
                "%s: %s has version %u of the format, this program reads version %d", model->name,
                path, (unsigned)head.version, WICK_AOT_VERSION);
  }
  if (head.header != kHeader) {
    return fail(state, WICK_AOT_WEIGHTS,
                "%s: %s is damaged: expected a header of %d bytes, got one of %u", model->name,
                path, (int)kHeader, (unsigned)head.header);
  }
  if (head.fingerprint != model->fingerprint) {
    return fail(state, WICK_AOT_WEIGHTS,
                "%s: %s holds the weights of another model, or of another build of this one",
                model->name, path);
  }
  if (head.bytes != model->weights_bytes) {
    return fail(state, WICK_AOT_WEIGHTS,
                "%s: %s is damaged: expected %llu bytes of weights, its header tells of %llu",
                model->name, path, (unsigned long long)model->weights_bytes,
                (unsigned long long)head.bytes);
  }
  if (size - kHeader != head.bytes) {
    return fail(state, WICK_AOT_WEIGHTS,
                "%s: %s %s: expected %llu bytes behind its header, got %llu", model->name, path,
                size - kHeader < head.bytes ? "is cut short" : "is too long",
                (unsigned long long)head.bytes, (unsigned long long)(size - kHeader));
  }
  state->weights = (const unsigned char*)mapping + kHeader;
  return WICK_AOT_OK;
}

void wick_aot_seed_generator(wick_aot_generator* generator, uint64_t seed) {
  generator->words[0] = (uint32_t)seed;
  for (uint32_t i = 1; i < 624; ++i) {
    const uint32_t before = generator->words[i - 1];
    generator->words[i] = 1812433253u * (before ^ before >> 30) + i;
  }
  generator->next = 624;
  generator->has_normal = 0;
  generator->normal = 0;
}

void wick_aot_seed(wick_aot_state* state, uint64_t seed) {
  if (state->generator) wick_aot_seed_generator(state->generator, seed);
}

/* PyTorch's. */
static const uint64_t kFirstSeed = 67280421310721u;

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
  if (code == WICK_AOT_OK && model->draws) {
    state->generator = (wick_aot_generator*)malloc(sizeof *state->generator);
    if (!state->generator)
      code = fail(state, WICK_AOT_MEMORY, "%s: memory cannot be had", model->name);
    wick_aot_seed(state, kFirstSeed);
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
  free(state->generator);
  const wick_aot_model* model = state->model;
  memset(state, 0, sizeof *state);
  state->model = model; /* for messages */
}
