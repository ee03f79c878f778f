#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "wick_aot_onednn.h"

#include <dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

/* One primitive that is ready to run. */
typedef struct {
  dnnl_primitive_t code;
  dnnl_memory_t source, weight, bias, result, addend, scratch;
  size_t scratch_bytes;
  /* Of a weight that is an argument, and that the library wants in another layout: how it gets there. */
  dnnl_primitive_t reorder;
  dnnl_memory_t plain;
  void* reordered;
} ready;

/* A constant weight in a layout of the library's own. */
typedef struct packed_weight {
  struct packed_weight* next;
  dnnl_memory_desc_t layout;
  void* memory;
} packed_weight;

/* What the library has for some sizes of a primitive. */
typedef struct {
  wick_aot_primitive what;
  ready made;
  uint64_t used; /* the larger the later */
} variant;
enum { kVariants = 8 };

/* A primitive: of fixed sizes variants[0] alone. */
typedef struct {
  variant variants[kVariants];
  packed_weight* packed;
} family;

typedef struct {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  void* scratch;
  size_t scratch_bytes;
  uint64_t calls;
  family* primitives;
} library;

static const char* status_name(dnnl_status_t status) {
  switch (status) {
    case dnnl_out_of_memory:
      return "out of memory";
    case dnnl_invalid_arguments:
      return "invalid arguments";
    case dnnl_unimplemented:
      return "not implemented";
    case dnnl_runtime_error:
      return "runtime error";
    default:
      return "an error";
  }
}

static int refused(wick_aot_state* state, int32_t index, dnnl_status_t status) {
  char text[128];
  snprintf(text, sizeof text, "oneDNN refuses primitive %d: %s", (int)index, status_name(status));
  return wick_aot_fail(state, WICK_AOT_LIBRARY, text);
}

static dnnl_status_t describe(dnnl_memory_desc_t* desc, const wick_aot_layout* layout) {
  return dnnl_memory_desc_init_by_strides(desc, layout->rank, layout->sizes, dnnl_f32,
                                          layout->strides);
}

/* The constant weight, or an argument, as it lies. */
static dnnl_status_t describe_weight(dnnl_memory_desc_t* desc, const wick_aot_primitive* p) {
  if (p->packed.count == 0) return describe(desc, &p->weight);
  /* The library has no function for these layouts, but documents the fields. Strides of blocks alone would be refused. */
  const dnnl_status_t status =
      dnnl_memory_desc_init_by_strides(desc, p->weight.rank, p->weight.sizes, dnnl_f32, NULL);
  if (status != dnnl_success) return status;
  dnnl_blocking_desc_t* blocks = &desc->format_desc.blocking;
  blocks->inner_nblks = p->packed.count;
  for (int32_t b = 0; b < p->packed.count; ++b) {
    blocks->inner_blks[b] = p->packed.sizes[b];
    blocks->inner_idxs[b] = p->packed.dims[b];
  }
  for (int32_t d = 0; d < p->weight.rank; ++d) {
    dnnl_dim_t block = 1;
    for (int32_t b = 0; b < p->packed.count; ++b) {
      if (p->packed.dims[b] == d) block *= p->packed.sizes[b];
    }
    desc->padded_dims[d] = (p->weight.sizes[d] + block - 1) / block * block;
    blocks->strides[d] = p->weight.strides[d];
  }
  return dnnl_success;
}

static dnnl_status_t append_activation(dnnl_post_ops_t ops, int32_t activation) {
  dnnl_alg_kind_t kind = dnnl_eltwise_relu;
  float alpha = 0, beta = 0;
  switch (activation) {
    case WICK_AOT_NO_ACTIVATION:
      return dnnl_success;
    case WICK_AOT_RELU:
      break;
    case WICK_AOT_SIGMOID:
      kind = dnnl_eltwise_logistic;
      break;
    case WICK_AOT_TANH:
      kind = dnnl_eltwise_tanh;
      break;
    case WICK_AOT_GELU:
      kind = dnnl_eltwise_gelu_erf;
      break;
    case WICK_AOT_SILU:
      kind = dnnl_eltwise_swish;
      alpha = 1;
      break;
    case WICK_AOT_RELU6:
      kind = dnnl_eltwise_clip;
      beta = 6;
      break;
    default:
      kind = dnnl_eltwise_hardswish;
      break;
  }
  return dnnl_post_ops_append_eltwise(ops, 1, kind, alpha, beta);
}

static dnnl_status_t make_attributes(const wick_aot_primitive* p, const dnnl_memory_desc_t* result,
                                     dnnl_primitive_attr_t* attributes) {
  dnnl_post_ops_t ops = NULL;
  dnnl_status_t status = dnnl_primitive_attr_create(attributes);
  if (status != dnnl_success) return status;
  status = dnnl_primitive_attr_set_scratchpad_mode(*attributes, dnnl_scratchpad_mode_user);
  if (status == dnnl_success) status = dnnl_post_ops_create(&ops);
  if (status == dnnl_success && p->residual == WICK_AOT_RESIDUAL_IN_RESULT) {
    status = dnnl_post_ops_append_sum(ops, 1);
  }
  if (status == dnnl_success && p->residual == WICK_AOT_RESIDUAL_APART) {
    status = dnnl_post_ops_append_binary(ops, dnnl_binary_add, result);
  }
  if (status == dnnl_success) status = append_activation(ops, p->activation);
  if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(*attributes, ops);
  if (ops) dnnl_post_ops_destroy(ops);
  return status;
}

/* The bias as the operation sees it: of products with as many dimensions as the result. */
static dnnl_status_t describe_bias(const wick_aot_primitive* p, dnnl_memory_desc_t* bias) {
  wick_aot_layout layout;
  memset(&layout, 0, sizeof layout);
  const wick_aot_layout* to = &p->result;
  if (p->kind == WICK_AOT_PRODUCT) {
    layout.rank = to->rank;
    for (int32_t d = 0; d < to->rank; ++d) {
      layout.sizes[d] = d + 1 == to->rank ? to->sizes[d] : 1;
      layout.strides[d] = d + 1 == to->rank ? 1 : to->sizes[to->rank - 1];
    }
  } else {
    layout.rank = 1;
    layout.sizes[0] = to->sizes[1];
    layout.strides[0] = 1;
  }
  return describe(bias, &layout);
}

static dnnl_status_t make_description(const wick_aot_primitive* p, dnnl_engine_t engine,
                                      const dnnl_memory_desc_t* source,
                                      const dnnl_memory_desc_t* weight,
                                      const dnnl_memory_desc_t* bias,
                                      const dnnl_memory_desc_t* result,
                                      dnnl_primitive_desc_t* description) {
  dnnl_primitive_attr_t attributes = NULL;
  dnnl_status_t status = make_attributes(p, result, &attributes);
  if (status == dnnl_success && p->kind == WICK_AOT_PRODUCT) {
    dnnl_matmul_desc_t what;
    status = dnnl_matmul_desc_init(&what, source, weight, bias, result);
    if (status == dnnl_success) {
      status = dnnl_primitive_desc_create(description, &what, attributes, engine, NULL);
    }
  } else if (status == dnnl_success && p->kind == WICK_AOT_CONVOLUTION) {
    dnnl_convolution_desc_t what;
    status = dnnl_dilated_convolution_forward_desc_init(
        &what, dnnl_forward_inference, dnnl_convolution_direct, source, weight, bias, result,
        p->stride, p->dilation, p->padding, p->padding_after);
    if (status == dnnl_success) {
      status = dnnl_primitive_desc_create(description, &what, attributes, engine, NULL);
    }
  } else if (status == dnnl_success) {
    dnnl_deconvolution_desc_t what;
    status = dnnl_dilated_deconvolution_forward_desc_init(
        &what, dnnl_forward_inference, dnnl_deconvolution_direct, source, weight, bias, result,
        p->stride, p->dilation, p->padding, p->padding_after);
    if (status == dnnl_success) {
      status = dnnl_primitive_desc_create(description, &what, attributes, engine, NULL);
    }
  }
  if (attributes) dnnl_primitive_attr_destroy(attributes);
  return status;
}

static void* aligned(size_t bytes) {
  void* memory = NULL;
  return posix_memalign(&memory, 64, bytes > 0 ? bytes : 64) == 0 ? memory : NULL;
}

/* Writes the constant weight into the layout that the operation wants, unless it has it already or some other sizes
 * wanted the same. */
static dnnl_status_t pack(wick_aot_state* state, library* lib, const wick_aot_primitive* p,
                          packed_weight** all, ready* made, const dnnl_memory_desc_t* plain,
                          const dnnl_memory_desc_t* wanted) {
  void* weight = (void*)(uintptr_t)(state->weights + p->weights_offset);
  if (dnnl_memory_desc_equal(plain, wanted)) {
    return dnnl_memory_create(&made->weight, wanted, lib->engine, weight);
  }
  for (packed_weight* known = *all; known; known = known->next) {
    if (dnnl_memory_desc_equal(&known->layout, wanted)) {
      return dnnl_memory_create(&made->weight, wanted, lib->engine, known->memory);
    }
  }
  packed_weight* packed = (packed_weight*)calloc(1, sizeof *packed);
  if (!packed) return dnnl_out_of_memory;
  packed->layout = *wanted;
  packed->memory = aligned(dnnl_memory_desc_get_size(wanted));
  dnnl_memory_t from = NULL;
  dnnl_primitive_desc_t description = NULL;
  dnnl_primitive_t code = NULL;
  dnnl_status_t status = packed->memory ? dnnl_success : dnnl_out_of_memory;
  if (status == dnnl_success) status = dnnl_memory_create(&from, plain, lib->engine, weight);
  if (status == dnnl_success) {
    status = dnnl_memory_create(&made->weight, wanted, lib->engine, packed->memory);
  }
  if (status == dnnl_success) {
    status = dnnl_reorder_primitive_desc_create(&description, plain, lib->engine, wanted,
                                                lib->engine, NULL);
  }
  if (status == dnnl_success) status = dnnl_primitive_create(&code, description);
  if (status == dnnl_success) {
    dnnl_exec_arg_t arguments[2];
    arguments[0].arg = DNNL_ARG_FROM;
    arguments[0].memory = from;
    arguments[1].arg = DNNL_ARG_TO;
    arguments[1].memory = made->weight;
    status = dnnl_primitive_execute(code, lib->stream, 2, arguments);
  }
  if (status == dnnl_success) status = dnnl_stream_wait(lib->stream);
  if (code) dnnl_primitive_destroy(code);
  if (description) dnnl_primitive_desc_destroy(description);
  if (from) dnnl_memory_destroy(from);
  if (status == dnnl_success) {
    packed->next = *all;
    *all = packed;
  } else {
    free(packed->memory);
    free(packed);
  }
  return status;
}

/* Makes memory for a weight that is an argument, and what brings it into the layout that the operation wants. */
static dnnl_status_t take_weight(library* lib, ready* made, const dnnl_memory_desc_t* plain,
                                 const dnnl_memory_desc_t* wanted) {
  if (dnnl_memory_desc_equal(plain, wanted)) {
    return dnnl_memory_create(&made->weight, plain, lib->engine, DNNL_MEMORY_NONE);
  }
  dnnl_primitive_desc_t description = NULL;
  made->reordered = aligned(dnnl_memory_desc_get_size(wanted));
  if (!made->reordered) return dnnl_out_of_memory;
  dnnl_status_t status = dnnl_memory_create(&made->weight, wanted, lib->engine, made->reordered);
  if (status == dnnl_success) {
    status = dnnl_memory_create(&made->plain, plain, lib->engine, DNNL_MEMORY_NONE);
  }
  if (status == dnnl_success) {
    status = dnnl_reorder_primitive_desc_create(&description, plain, lib->engine, wanted,
                                                lib->engine, NULL);
  }
  if (status == dnnl_success) status = dnnl_primitive_create(&made->reorder, description);
  if (description) dnnl_primitive_desc_destroy(description);
  return status;
}

static dnnl_status_t prepare(wick_aot_state* state, library* lib, const wick_aot_primitive* p,
                             packed_weight** packed, ready* made) {
  dnnl_memory_desc_t source, weight, any, bias, result;
  const int has_bias = p->bias_offset != -1;
  dnnl_primitive_desc_t description = NULL;
  dnnl_status_t status = describe(&source, &p->source);
  if (status == dnnl_success) status = describe_weight(&weight, p);
  if (status == dnnl_success) status = describe(&result, &p->result);
  if (status == dnnl_success && has_bias) status = describe_bias(p, &bias);
  if (status == dnnl_success) {
    status = dnnl_memory_desc_init_by_tag(&any, p->weight.rank, p->weight.sizes, dnnl_f32,
                                          dnnl_format_tag_any);
  }
  const int packs = p->weights_offset >= 0 || p->kind != WICK_AOT_PRODUCT;
  if (status == dnnl_success) {
    status = make_description(p, lib->engine, &source, packs ? &any : &weight,
                              has_bias ? &bias : NULL, &result, &description);
  }
  if (status == dnnl_success) status = dnnl_primitive_create(&made->code, description);
  if (status == dnnl_success) {
    const dnnl_memory_desc_t* wanted =
        dnnl_primitive_desc_query_md(description, dnnl_query_weights_md, 0);
    status = p->weights_offset >= 0 ? pack(state, lib, p, packed, made, &weight, wanted)
                                    : take_weight(lib, made, &weight, packs ? wanted : &weight);
  }
  if (status == dnnl_success) {
    status = dnnl_memory_create(&made->source, &source, lib->engine, DNNL_MEMORY_NONE);
  }
  if (status == dnnl_success) {
    status = dnnl_memory_create(&made->result, &result, lib->engine, DNNL_MEMORY_NONE);
  }
  if (status == dnnl_success && p->residual == WICK_AOT_RESIDUAL_APART) {
    status = dnnl_memory_create(&made->addend, &result, lib->engine, DNNL_MEMORY_NONE);
  }
  if (status == dnnl_success && has_bias) {
    void* at = p->bias_offset >= 0 ? (void*)(uintptr_t)(state->weights + p->bias_offset)
                                   : DNNL_MEMORY_NONE;
    status = dnnl_memory_create(&made->bias, &bias, lib->engine, at);
  }
  if (status == dnnl_success) {
    const dnnl_memory_desc_t* scratch =
        dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0);
    const size_t bytes = dnnl_memory_desc_get_size(scratch);
    if (bytes > 0) {
      status = dnnl_memory_create(&made->scratch, scratch, lib->engine, DNNL_MEMORY_NONE);
      made->scratch_bytes = bytes;
    }
  }
  if (description) dnnl_primitive_desc_destroy(description);
  return status;
}

static int set_threads(int threads) {
#ifdef _OPENMP
  const int before = omp_get_max_threads();
  if (threads > 0) omp_set_num_threads(threads);
  return before;
#else
  (void)threads;
  return 0;
#endif
}

static void clear(ready* p) {
  if (p->code) dnnl_primitive_destroy(p->code);
  if (p->reorder) dnnl_primitive_destroy(p->reorder);
  dnnl_memory_t memories[] = {p->source, p->weight,  p->bias, p->result,
                              p->addend, p->scratch, p->plain};
  for (size_t m = 0; m < sizeof memories / sizeof memories[0]; ++m) {
    if (memories[m]) dnnl_memory_destroy(memories[m]);
  }
  free(p->reordered);
  memset(p, 0, sizeof *p);
}

/* Makes the variant ready for a description. */
static int make(wick_aot_state* state, library* lib, int32_t index, const wick_aot_primitive* p,
                variant* v) {
  const int before = p->one_thread ? set_threads(1) : 0;
  const dnnl_status_t status = prepare(state, lib, p, &lib->primitives[index].packed, &v->made);
  if (p->one_thread) set_threads(before);
  if (status != dnnl_success) {
    clear(&v->made);
    return refused(state, index, status);
  }
  v->what = *p;
  if (v->made.scratch_bytes > lib->scratch_bytes) {
    free(lib->scratch);
    lib->scratch_bytes = 0;
    lib->scratch = aligned(v->made.scratch_bytes);
    if (!lib->scratch) {
      clear(&v->made);
      return wick_aot_fail(state, WICK_AOT_MEMORY, "memory cannot be had");
    }
    lib->scratch_bytes = v->made.scratch_bytes;
  }
  return WICK_AOT_OK;
}

static dnnl_status_t open_library(library* lib) {
  dnnl_status_t status = dnnl_engine_create(&lib->engine, dnnl_cpu, 0);
  if (status == dnnl_success) {
    status = dnnl_stream_create(&lib->stream, lib->engine, dnnl_stream_default_flags);
  }
  return status;
}

static void close_library(library* lib) {
  if (lib->stream) dnnl_stream_destroy(lib->stream);
  if (lib->engine) dnnl_engine_destroy(lib->engine);
}

static void free_packed(packed_weight* packed) {
  while (packed) {
    packed_weight* next = packed->next;
    free(packed->memory);
    free(packed);
    packed = next;
  }
}

static int onednn_init(wick_aot_state* state) {
  const wick_aot_model* model = state->model;
  library* lib = (library*)calloc(1, sizeof *lib);
  if (!lib) return wick_aot_fail(state, WICK_AOT_MEMORY, "memory cannot be had");
  state->library = lib;
  lib->primitives = (family*)calloc((size_t)model->num_primitives, sizeof *lib->primitives);
  if (!lib->primitives) return wick_aot_fail(state, WICK_AOT_MEMORY, "memory cannot be had");
  const dnnl_status_t status = open_library(lib);
  if (status != dnnl_success) return refused(state, -1, status);
  for (int32_t i = 0; i < model->num_primitives; ++i) {
    const wick_aot_primitive* p = &model->primitives[i];
    if (p->kind == WICK_AOT_SIZED) continue;
    const int code = make(state, lib, i, p, &lib->primitives[i].variants[0]);
    if (code != WICK_AOT_OK) return code;
  }
  return WICK_AOT_OK;
}

static void onednn_free(wick_aot_state* state) {
  library* lib = (library*)state->library;
  if (!lib) return;
  for (int32_t i = 0; lib->primitives && i < state->model->num_primitives; ++i) {
    family* f = &lib->primitives[i];
    for (int v = 0; v < kVariants; ++v) clear(&f->variants[v].made);
    free_packed(f->packed);
  }
  free(lib->primitives);
  free(lib->scratch);
  close_library(lib);
  free(lib);
  state->library = NULL;
}

const wick_aot_library wick_aot_onednn = {onednn_init, onednn_free};

/* Whether blocks and strides are all that there is to a layout. */
static int is_blocked(const dnnl_memory_desc_t* desc) {
  if (desc->format_kind != dnnl_blocked || desc->offset0 != 0 || desc->extra.flags != 0) return 0;
  for (int d = 0; d < desc->ndims; ++d) {
    if (desc->padded_offsets[d] != 0) return 0;
  }
  return desc->format_desc.blocking.inner_nblks > 0;
}

void* wick_aot_pack(const wick_aot_primitive* primitive, const float* weight,
                    wick_aot_layout* layout, wick_aot_blocks* blocks, size_t* bytes) {
  library lib;
  wick_aot_state state;
  ready made;
  packed_weight* packed = NULL;
  wick_aot_primitive p = *primitive;
  memset(&lib, 0, sizeof lib);
  memset(&state, 0, sizeof state);
  memset(&made, 0, sizeof made);
  state.weights = (const unsigned char*)weight;
  p.weights_offset = 0;
  if (p.bias_offset != -1) p.bias_offset = -2;
  dnnl_status_t status = open_library(&lib);
  const int before = p.one_thread ? set_threads(1) : 0;
  if (status == dnnl_success) status = prepare(&state, &lib, &p, &packed, &made);
  if (p.one_thread) set_threads(before);
  clear(&made);
  close_library(&lib);
  void* memory = NULL;
  if (status == dnnl_success && packed && is_blocked(&packed->layout)) {
    const dnnl_blocking_desc_t* from = &packed->layout.format_desc.blocking;
    *layout = p.weight;
    memset(blocks, 0, sizeof *blocks);
    blocks->count = from->inner_nblks;
    for (int b = 0; b < from->inner_nblks; ++b) {
      blocks->sizes[b] = from->inner_blks[b];
      blocks->dims[b] = from->inner_idxs[b];
    }
    for (int d = 0; d < p.weight.rank; ++d) layout->strides[d] = from->strides[d];
    *bytes = dnnl_memory_desc_get_size(&packed->layout);
    memory = packed->memory;
    packed->memory = NULL;
  }
  free_packed(packed);
  return memory;
}

static int same_layout(const wick_aot_layout* a, const wick_aot_layout* b) {
  const size_t bytes = (size_t)a->rank * sizeof a->sizes[0];
  return a->rank == b->rank && memcmp(a->sizes, b->sizes, bytes) == 0 &&
         memcmp(a->strides, b->strides, bytes) == 0;
}

/* Of two descriptions of one primitive. */
static int same_sizes(const wick_aot_primitive* a, const wick_aot_primitive* b) {
  return a->kind == b->kind && a->residual == b->residual && a->activation == b->activation &&
         a->one_thread == b->one_thread && a->weights_offset == b->weights_offset &&
         a->bias_offset == b->bias_offset && a->spatial == b->spatial &&
         memcmp(a->stride, b->stride, sizeof a->stride) == 0 &&
         memcmp(a->dilation, b->dilation, sizeof a->dilation) == 0 &&
         memcmp(a->padding, b->padding, sizeof a->padding) == 0 &&
         memcmp(a->padding_after, b->padding_after, sizeof a->padding_after) == 0 &&
         same_layout(&a->source, &b->source) && same_layout(&a->weight, &b->weight) &&
         same_layout(&a->result, &b->result);
}

/* The variant of a primitive for these sizes, made in place of the one that was not used for the longest time when
 * there is none. */
static int find_variant(wick_aot_state* state, library* lib, int32_t index,
                        const wick_aot_primitive* sized, variant** found) {
  family* f = &lib->primitives[index];
  variant* oldest = &f->variants[0];
  for (int i = 0; i < kVariants; ++i) {
    variant* v = &f->variants[i];
    if (v->made.code && same_sizes(&v->what, sized)) {
      *found = v;
      return WICK_AOT_OK;
    }
    if (v->used < oldest->used) oldest = v;
  }
  clear(&oldest->made);
  *found = oldest;
  return make(state, lib, index, sized, oldest);
}

int wick_aot_run(wick_aot_state* state, int32_t index, const wick_aot_primitive* sized,
                 const wick_aot_arguments* a) {
  library* lib = (library*)state->library;
  variant* v = &lib->primitives[index].variants[0];
  if (sized) {
    const int code = find_variant(state, lib, index, sized, &v);
    if (code != WICK_AOT_OK) return code;
    v->used = ++lib->calls;
  }
  const wick_aot_primitive* p = &v->what;
  const ready* made = &v->made;
  dnnl_exec_arg_t arguments[6];
  int count = 0;
  dnnl_status_t status = dnnl_success;
#define WICK_AOT_ADD(number, object, at)                                    \
  do {                                                                      \
    if (status == dnnl_success && (at)) {                                   \
      status = dnnl_memory_set_data_handle(object, (void*)(uintptr_t)(at)); \
    }                                                                       \
    arguments[count].arg = number;                                          \
    arguments[count++].memory = object;                                     \
  } while (0)
  const int before = p->one_thread ? set_threads(1) : 0;
  if (made->reorder) {
    dnnl_exec_arg_t moved[2];
    moved[0].arg = DNNL_ARG_FROM;
    moved[0].memory = made->plain;
    moved[1].arg = DNNL_ARG_TO;
    moved[1].memory = made->weight;
    status = dnnl_memory_set_data_handle(made->plain, (void*)(uintptr_t)a->weight);
    if (status == dnnl_success) {
      status = dnnl_primitive_execute(made->reorder, lib->stream, 2, moved);
    }
  }
  WICK_AOT_ADD(DNNL_ARG_SRC, made->source, a->source);
  WICK_AOT_ADD(DNNL_ARG_WEIGHTS, made->weight, made->reorder ? NULL : a->weight);
  WICK_AOT_ADD(DNNL_ARG_DST, made->result, a->result);
  if (made->bias) WICK_AOT_ADD(DNNL_ARG_BIAS, made->bias, a->bias);
  if (made->addend) {
    WICK_AOT_ADD(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, made->addend, a->addend);
  }
  if (made->scratch) WICK_AOT_ADD(DNNL_ARG_SCRATCHPAD, made->scratch, lib->scratch);
#undef WICK_AOT_ADD
  if (status == dnnl_success) {
    status = dnnl_primitive_execute(made->code, lib->stream, count, arguments);
  }
  if (p->one_thread) set_threads(before);
  if (status != dnnl_success) return refused(state, index, status);
  return WICK_AOT_OK;
}
