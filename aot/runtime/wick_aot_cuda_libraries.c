/* Products by cuBLASLt and convolutions by cuDNN, for models that were compiled ahead of time for CUDA devices. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wick_aot_cuda.h"
#include "wick_aot_cuda_inside.h"

typedef struct {
  uint64_t data[8];
} algorithm;
typedef struct {
  algorithm how;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} heuristic;

#define WICK_CUDA_LT(_)                                                                           \
  _(cublasLtCreate, (void**))                                                                     \
  _(cublasLtDestroy, (void*))                                                                     \
  _(cublasLtMatmulDescCreate, (void**, int, int))                                                 \
  _(cublasLtMatmulDescSetAttribute, (void*, int, const void*, size_t))                            \
  _(cublasLtMatmulDescDestroy, (void*))                                                           \
  _(cublasLtMatrixLayoutCreate, (void**, int, uint64_t, uint64_t, int64_t))                       \
  _(cublasLtMatrixLayoutSetAttribute, (void*, int, const void*, size_t))                          \
  _(cublasLtMatrixLayoutDestroy, (void*))                                                         \
  _(cublasLtMatmulPreferenceCreate, (void**))                                                     \
  _(cublasLtMatmulPreferenceSetAttribute, (void*, int, const void*, size_t))                      \
  _(cublasLtMatmulPreferenceDestroy, (void*))                                                     \
  _(cublasLtMatmulAlgoGetHeuristic,                                                               \
    (void*, void*, void*, void*, void*, void*, void*, int, heuristic*, int*))                     \
  _(cublasLtMatmul,                                                                               \
    (void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, \
     void*, void*, void*, const algorithm*, void*, size_t, void*))
#define WICK_CUDA_DNN(_)                                                   \
  _(cudnnCreate, (void**))                                                 \
  _(cudnnDestroy, (void*))                                                 \
  _(cudnnSetStream, (void*, void*))                                        \
  _(cudnnBackendCreateDescriptor, (int, void**))                           \
  _(cudnnBackendDestroyDescriptor, (void*))                                \
  _(cudnnBackendFinalize, (void*))                                         \
  _(cudnnBackendSetAttribute, (void*, int, int, int64_t, const void*))     \
  _(cudnnBackendGetAttribute, (void*, int, int, int64_t, int64_t*, void*)) \
  _(cudnnBackendExecute, (void*, void*, void*))

/* Of the process; the mutex is held while they are sought. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct { WICK_CUDA_LT(WICK_CUDA_MEMBER) } lt;
static struct {
  WICK_CUDA_DNN(WICK_CUDA_MEMBER)
  const char* (*cudnnGetErrorString)(int);
} dnn;
static int lt_is_found, dnn_is_found;

typedef struct wick_cuda_prepared {
  struct wick_cuda_prepared* next;
  wick_aot_cuda_primitive what;
  int is_kept; /* as one of the model's, all of whose sizes are fixed */
  /* of products */
  void *product, *x, *y, *d;
  heuristic how;
  /* of convolutions */
  void* plan;
  int64_t workspace;
  int finishes; /* whether the plan adds the bias and the addend, too */
} prepared;

/* At most this many are kept. */
enum { kMostPrepared = 4096 };
static const size_t kProductWorkspace = (size_t)32 << 20;
static const int64_t kMostWorkspace = (int64_t)1 << 30;
/* Products of at most this many multiplications are quicker without memory between two kernels. */
static const double kTiny = 1 << 21;

static wick_cuda_state* state_of(const wick_aot_state* state) {
  return (wick_cuda_state*)state->library;
}

static int find_function(wick_aot_state* state, void* library, const char* what, const char* name,
                         void* into) {
  void* const found = dlsym(library, name);
  if (!found) {
    return wick_cuda_fail(state, WICK_AOT_LIBRARY, "%s has no function %s; it is too old", what,
                          name);
  }
  memcpy(into, &found, sizeof found);
  return WICK_AOT_OK;
}

static int check_product(wick_aot_state* state, int status) {
  if (status == 0) return WICK_AOT_OK;
  return wick_cuda_fail(state, WICK_AOT_LIBRARY, "cuBLASLt fails with status %d", status);
}
static int check_convolution(wick_aot_state* state, int status) {
  if (status == 0) return WICK_AOT_OK;
  return wick_cuda_fail(state, WICK_AOT_LIBRARY, "cuDNN: %s", dnn.cudnnGetErrorString(status));
}

static int open_lt(wick_aot_state* state) {
  static const char* const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so",
                                      NULL};
  if (lt_is_found) return WICK_AOT_OK;
  void* const library = wick_cuda_open(state, names);
  if (!library) return WICK_AOT_LIBRARY;
  int code = WICK_AOT_OK;
#define FIND(name, parameters) \
  if (code == WICK_AOT_OK) code = find_function(state, library, "cuBLASLt", #name, &lt.name);
  WICK_CUDA_LT(FIND)
#undef FIND
  lt_is_found = code == WICK_AOT_OK;
  return code;
}

static int open_dnn(wick_aot_state* state) {
  static const char* const names[] = {"libcudnn.so.9", "libcudnn.so", NULL};
  if (dnn_is_found) return WICK_AOT_OK;
  void* const library = wick_cuda_open(state, names);
  if (!library) return WICK_AOT_LIBRARY;
  int code =
      find_function(state, library, "cuDNN", "cudnnGetErrorString", &dnn.cudnnGetErrorString);
#define FIND(name, parameters) \
  if (code == WICK_AOT_OK) code = find_function(state, library, "cuDNN", #name, &dnn.name);
  WICK_CUDA_DNN(FIND)
#undef FIND
  dnn_is_found = code == WICK_AOT_OK;
  return code;
}

int wick_cuda_open_libraries(wick_aot_state* state) {
  wick_cuda_state* c = state_of(state);
  const wick_aot_cuda_program* program = state->model->cuda;
  int code = WICK_AOT_OK;
  pthread_mutex_lock(&mutex);
  if (program->multiplies) code = open_lt(state);
  if (code == WICK_AOT_OK && program->convolves) code = open_dnn(state);
  pthread_mutex_unlock(&mutex);
  if (code == WICK_AOT_OK && program->multiplies) {
    code = check_product(state, lt.cublasLtCreate(&c->multiplier));
  }
  if (code == WICK_AOT_OK && program->convolves) {
    code = check_convolution(state, dnn.cudnnCreate(&c->convolver));
  }
  return code;
}

/* ---- products ---- */

/* Numbers of cuBLASLt. */
enum {
  kReal32 = 0,
  kReal64 = 1,
  kReal16 = 2,
  kBFloat16 = 14,
  kCompute32 = 68,
  kCompute64 = 70,
  kComputeReduced = 77,
  kTransposeA = 3,
  kTransposeB = 4,
  kEpilogue = 7,
  kBiasPointer = 8,
  kEpilogueRelu = 2,
  kEpilogueBias = 4,
  kBatchCount = 5,
  kBatchOffset = 6,
  kMaxWorkspace = 1,
  kAlignmentA = 5,
  kAlignmentB = 6,
  kAlignmentC = 7,
  kAlignmentD = 8
};

/* The library has matrices column by column, so transposes are multiplied in the other order. */
typedef struct {
  int32_t transposed;
  int64_t leading, step;
} matrix;

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* Of [B, rows, columns], transposed: the library's matrix has `columns` rows. */
static matrix transpose_of(const wick_aot_cuda_layout* l) {
  const int64_t rows = l->sizes[1], columns = l->sizes[2];
  matrix m;
  m.step = l->sizes[0] == 1 ? 0 : l->strides[0];
  m.transposed = !((l->strides[2] == 1 || columns == 1) && (l->strides[1] >= columns || rows == 1));
  m.leading = m.transposed ? larger(l->strides[2], rows) : larger(l->strides[1], columns);
  return m;
}

static int make_layout(wick_aot_state* state, void** made, int type, int64_t rows, int64_t columns,
                       int64_t leading, int64_t batches, int64_t step) {
  const int32_t count = (int32_t)batches;
  int code = check_product(
      state, lt.cublasLtMatrixLayoutCreate(made, type, (uint64_t)rows, (uint64_t)columns, leading));
  if (code == WICK_AOT_OK) {
    code = check_product(
        state, lt.cublasLtMatrixLayoutSetAttribute(*made, kBatchCount, &count, sizeof count));
  }
  if (code == WICK_AOT_OK) {
    code = check_product(
        state, lt.cublasLtMatrixLayoutSetAttribute(*made, kBatchOffset, &step, sizeof step));
  }
  return code;
}

static void set_product(void* product, int attribute, int32_t value, int* status) {
  if (*status == 0) {
    *status = lt.cublasLtMatmulDescSetAttribute(product, attribute, &value, sizeof value);
  }
}
static void prefer(void* preference, int attribute, int64_t alignment, int* status) {
  const uint32_t value = (uint32_t)alignment;
  if (*status == 0) {
    *status = lt.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value);
  }
}

static int choose_algorithm(wick_aot_state* state, prepared* p, int is_tiny) {
  void* preference = NULL;
  const size_t workspace = is_tiny ? 0 : kProductWorkspace;
  int found = 0;
  int status = lt.cublasLtMatmulPreferenceCreate(&preference);
  if (status == 0) {
    status = lt.cublasLtMatmulPreferenceSetAttribute(preference, kMaxWorkspace, &workspace,
                                                     sizeof workspace);
    prefer(preference, kAlignmentA, p->what.weight.alignment, &status);
    prefer(preference, kAlignmentB, p->what.source.alignment, &status);
    prefer(preference, kAlignmentC, p->what.result.alignment, &status);
    prefer(preference, kAlignmentD, p->what.result.alignment, &status);
    if (status == 0) {
      status = lt.cublasLtMatmulAlgoGetHeuristic(state_of(state)->multiplier, p->product, p->x,
                                                 p->y, p->d, p->d, preference, 1, &p->how, &found);
    }
    lt.cublasLtMatmulPreferenceDestroy(preference);
  }
  if (status == 0 && found > 0) return wick_cuda_reserve(state, p->how.workspace);
  return wick_cuda_fail(state, WICK_AOT_LIBRARY,
                        "cuBLASLt has no way to multiply %lld matrices of %lld x %lld and %lld x "
                        "%lld (status %d)",
                        (long long)p->what.result.sizes[0], (long long)p->what.source.sizes[1],
                        (long long)p->what.source.sizes[2], (long long)p->what.weight.sizes[1],
                        (long long)p->what.weight.sizes[2], status);
}

static int prepare_product(wick_aot_state* state, prepared* p) {
  const wick_aot_cuda_primitive* w = &p->what;
  const int64_t batches = w->result.sizes[0], m = w->result.sizes[1], n = w->result.sizes[2];
  const int64_t k = w->source.sizes[2];
  const matrix first = transpose_of(&w->weight), second = transpose_of(&w->source);
  const int is_double = w->dtype == WICK_AOT_FLOAT64, is_float = w->dtype == WICK_AOT_FLOAT32;
  const int type = is_double                      ? kReal64
                   : is_float                     ? kReal32
                   : w->dtype == WICK_AOT_FLOAT16 ? kReal16
                                                  : kBFloat16;
  const int compute = is_double ? kCompute64 : w->reduces ? kComputeReduced : kCompute32;
  int status = 0;
  int code = check_product(
      state, lt.cublasLtMatmulDescCreate(&p->product, compute, is_double ? kReal64 : kReal32));
  if (code != WICK_AOT_OK) return code;
  set_product(p->product, kTransposeA, first.transposed, &status);
  set_product(p->product, kTransposeB, second.transposed, &status);
  if (w->has_bias || w->relu) {
    set_product(p->product, kEpilogue,
                (w->has_bias ? kEpilogueBias : 0) | (w->relu ? kEpilogueRelu : 0), &status);
  }
  code = check_product(state, status);
  if (code == WICK_AOT_OK) {
    code = make_layout(state, &p->x, type, first.transposed ? k : n, first.transposed ? n : k,
                       first.leading, batches, first.step);
  }
  if (code == WICK_AOT_OK) {
    code = make_layout(state, &p->y, type, second.transposed ? m : k, second.transposed ? k : m,
                       second.leading, batches, second.step);
  }
  if (code == WICK_AOT_OK) code = make_layout(state, &p->d, type, n, m, n, batches, m * n);
  if (code != WICK_AOT_OK) return code;
  const double work = (double)batches * (double)m * (double)n * (double)k;
  return choose_algorithm(state, p, (is_float || is_double) && work <= kTiny);
}

static int run_product(wick_aot_state* state, const prepared* p, const void* source,
                       const void* weight, const void* bias, void* result) {
  const wick_cuda_state* c = state_of(state);
  const double wide[2] = {1, 0};
  const float narrow[2] = {1, 0};
  const int is_double = p->what.dtype == WICK_AOT_FLOAT64;
  const void* const one = is_double ? (const void*)&wide[0] : (const void*)&narrow[0];
  const void* const zero = is_double ? (const void*)&wide[1] : (const void*)&narrow[1];
  if (p->what.has_bias) {
    const int code = check_product(
        state, lt.cublasLtMatmulDescSetAttribute(p->product, kBiasPointer, &bias, sizeof bias));
    if (code != WICK_AOT_OK) return code;
  }
  return check_product(
      state, lt.cublasLtMatmul(c->multiplier, p->product, one, weight, p->x, source, p->y, zero,
                               result, p->d, result, p->d, &p->how.how,
                               (void*)(uintptr_t)c->workspace, p->how.workspace, c->stream));
}

/* ---- convolutions ---- */

/* Numbers of cuDNN: kinds of descriptors, of values, and attributes (cudnn_graph.h of version 9). */
enum {
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kEngineChoice = 3,
  kHeuristic = 4,
  kPlan = 5,
  kForward = 10,
  kImages = 12,
  kPointwiseCall = 13,
  kGraph = 15,
  kArguments = 16,
  kTensor = 17
};
enum {
  kHandleValue = 0,
  kDataTypeValue = 1,
  kBoolValue = 2,
  kIntValue = 3,
  kFloatValue = 4,
  kDoubleValue = 5,
  kPointerValue = 6,
  kConvolutionModeValue = 7,
  kHeuristicModeValue = 8,
  kNoteValue = 11,
  kPointwiseModeValue = 14,
  kDescriptorValue = 15
};
enum {
  kPointwiseMode = 0,
  kPointwisePrecision = 1,
  kConvolutionPrecision = 100,
  kConvolutionMode = 101,
  kConvolutionDilations = 102,
  kConvolutionStrides = 103,
  kConvolutionPaddingAfter = 104,
  kConvolutionPaddingBefore = 105,
  kConvolutionDimensions = 106,
  kHeuristicMode = 200,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kChoiceEngine = 300,
  kPlanHandle = 400,
  kPlanChoice = 401,
  kPlanWorkspace = 402,
  kForwardAlpha = 700,
  kImagesAlpha = 706,
  kPointwiseDescriptor = 750,
  kPointwiseX = 751,
  kPointwiseB = 752,
  kPointwiseY = 753,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorSizes = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorIsVirtual = 907,
  kArgumentsIds = 1000,
  kArgumentsPointers = 1001,
  kArgumentsWorkspace = 1003,
  kEngineNotes = 1303
};
enum {
  kTensorCore = 0,
  kDownConverts = 1,
  kReducedSums = 2,
  kNondeterministic = 4,
  kLargeWinograd = 8
};
enum {
  kImagesId = 1,
  kWeightsId = 2,
  kResultsId = 3,
  kBiasId = 4,
  kAddendId = 5,
  kFirstVirtual = 6
};
enum { kMostDescriptors = 32, kMostChoices = 64, kMostNotes = 32 };

/* Descriptors that are destroyed together; the first status that is no success. */
typedef struct {
  void* made[kMostDescriptors];
  int count;
  int status;
} descriptors;

static void* new_descriptor(descriptors* all, int kind) {
  void* made = NULL;
  if (all->status != 0) return NULL;
  if (all->count == kMostDescriptors) {
    all->status = -1;
    return NULL;
  }
  all->status = dnn.cudnnBackendCreateDescriptor(kind, &made);
  if (all->status == 0) all->made[all->count++] = made;
  return made;
}
static void set_attribute(descriptors* all, void* descriptor, int attribute, int type,
                          int64_t count, const void* values) {
  if (all->status == 0) {
    all->status = dnn.cudnnBackendSetAttribute(descriptor, attribute, type, count, values);
  }
}
static void finalize(descriptors* all, void* descriptor) {
  if (all->status == 0) all->status = dnn.cudnnBackendFinalize(descriptor);
}
static void destroy_all(descriptors* all) {
  while (all->count > 0) dnn.cudnnBackendDestroyDescriptor(all->made[--all->count]);
}

static int type_of(int64_t dtype) {
  return dtype == WICK_AOT_FLOAT32   ? 0
         : dtype == WICK_AOT_FLOAT64 ? 1
         : dtype == WICK_AOT_FLOAT16 ? 2
                                     : 9;
}

static void* describe(descriptors* all, int64_t id, int type, const wick_aot_cuda_layout* layout,
                      int64_t alignment, int is_virtual) {
  void* const tensor = new_descriptor(all, kTensor);
  const unsigned char hidden = is_virtual ? 1 : 0;
  set_attribute(all, tensor, kTensorType, kDataTypeValue, 1, &type);
  set_attribute(all, tensor, kTensorSizes, kIntValue, layout->rank, layout->sizes);
  set_attribute(all, tensor, kTensorStrides, kIntValue, layout->rank, layout->strides);
  set_attribute(all, tensor, kTensorId, kIntValue, 1, &id);
  set_attribute(all, tensor, kTensorAlignment, kIntValue, 1, &alignment);
  set_attribute(all, tensor, kTensorIsVirtual, kBoolValue, 1, &hidden);
  finalize(all, tensor);
  return tensor;
}

/* The operation of the convolution: y from x, or for a transposed one the images of which x would be the results. */
static void* convolution_call(descriptors* all, const wick_aot_cuda_primitive* w, void* x,
                              void* weights, void* y) {
  const int transposed = w->kind == WICK_AOT_CUDA_TRANSPOSED;
  const int is_double = w->dtype == WICK_AOT_FLOAT64;
  const int precision = is_double ? 1 : 0, cross_correlation = 1;
  const int first = transposed ? kImagesAlpha : kForwardAlpha;
  const float narrow[2] = {1, 0};
  const double wide[2] = {1, 0};
  void* const convolution = new_descriptor(all, kConvolution);
  set_attribute(all, convolution, kConvolutionPrecision, kDataTypeValue, 1, &precision);
  set_attribute(all, convolution, kConvolutionMode, kConvolutionModeValue, 1, &cross_correlation);
  set_attribute(all, convolution, kConvolutionDimensions, kIntValue, 1, &w->spatial);
  set_attribute(all, convolution, kConvolutionPaddingBefore, kIntValue, w->spatial, w->padding);
  set_attribute(all, convolution, kConvolutionPaddingAfter, kIntValue, w->spatial, w->padding);
  set_attribute(all, convolution, kConvolutionStrides, kIntValue, w->spatial, w->stride);
  set_attribute(all, convolution, kConvolutionDilations, kIntValue, w->spatial, w->dilation);
  finalize(all, convolution);
  void* const call = new_descriptor(all, transposed ? kImages : kForward);
  for (int i = 0; i < 2; ++i) {
    set_attribute(all, call, first + i, is_double ? kDoubleValue : kFloatValue, 1,
                  is_double ? (const void*)&wide[i] : (const void*)&narrow[i]);
  }
  set_attribute(all, call, first + 2, kDescriptorValue, 1, &convolution);
  set_attribute(all, call, first + 3, kDescriptorValue, 1, &weights);
  set_attribute(all, call, first + 4, kDescriptorValue, 1, transposed ? &y : &x);
  set_attribute(all, call, first + 5, kDescriptorValue, 1, transposed ? &x : &y);
  finalize(all, call);
  return call;
}

static void* pointwise_call(descriptors* all, int mode, int precision, void* x, void* b, void* y) {
  void* const pointwise = new_descriptor(all, kPointwise);
  set_attribute(all, pointwise, kPointwiseMode, kPointwiseModeValue, 1, &mode);
  set_attribute(all, pointwise, kPointwisePrecision, kDataTypeValue, 1, &precision);
  finalize(all, pointwise);
  void* const call = new_descriptor(all, kPointwiseCall);
  set_attribute(all, call, kPointwiseDescriptor, kDescriptorValue, 1, &pointwise);
  set_attribute(all, call, kPointwiseX, kDescriptorValue, 1, &x);
  if (b) set_attribute(all, call, kPointwiseB, kDescriptorValue, 1, &b);
  set_attribute(all, call, kPointwiseY, kDescriptorValue, 1, &y);
  finalize(all, call);
  return call;
}

/* Whether an engine always gives the same bits and, unless told otherwise, keeps those of its factors. */
static int is_fit(void* choice, int may_reduce) {
  void* engine = NULL;
  int notes[kMostNotes];
  int64_t count = 0, found = 0;
  if (dnn.cudnnBackendCreateDescriptor(kEngine, &engine) != 0) return 0;
  int fits = dnn.cudnnBackendGetAttribute(choice, kChoiceEngine, kDescriptorValue, 1, &found,
                                          &engine) == 0 &&
             dnn.cudnnBackendGetAttribute(engine, kEngineNotes, kNoteValue, kMostNotes, &count,
                                          notes) == 0;
  for (int64_t i = 0; fits && i < count && i < kMostNotes; ++i) {
    const int note = notes[i];
    if (note == kNondeterministic || note == kLargeWinograd) fits = 0;
    if (!may_reduce && (note == kTensorCore || note == kDownConverts || note == kReducedSums)) {
      fits = 0;
    }
  }
  dnn.cudnnBackendDestroyDescriptor(engine);
  return fits;
}

/* The plan of a choice, or null. */
static void* plan_of(void* handle, void* choice, int64_t* workspace) {
  void* plan = NULL;
  int64_t found = 0;
  if (dnn.cudnnBackendCreateDescriptor(kPlan, &plan) != 0) return NULL;
  if (dnn.cudnnBackendSetAttribute(plan, kPlanHandle, kHandleValue, 1, &handle) == 0 &&
      dnn.cudnnBackendSetAttribute(plan, kPlanChoice, kDescriptorValue, 1, &choice) == 0 &&
      dnn.cudnnBackendFinalize(plan) == 0 &&
      dnn.cudnnBackendGetAttribute(plan, kPlanWorkspace, kIntValue, 1, &found, workspace) == 0 &&
      *workspace <= kMostWorkspace) {
    return plan;
  }
  dnn.cudnnBackendDestroyDescriptor(plan);
  return NULL;
}

/* The plan of the first engine that fits, of those that a heuristic gives; null when there is none. */
static void* choose_plan(void* handle, void* graph, int mode, int may_reduce, int64_t* workspace) {
  void *heuristic_of_graph = NULL, *plan = NULL;
  void* choices[kMostChoices];
  int64_t count = 0, filled = 0, made = 0;
  if (dnn.cudnnBackendCreateDescriptor(kHeuristic, &heuristic_of_graph) != 0) return NULL;
  if (dnn.cudnnBackendSetAttribute(heuristic_of_graph, kHeuristicGraph, kDescriptorValue, 1,
                                   &graph) == 0 &&
      dnn.cudnnBackendSetAttribute(heuristic_of_graph, kHeuristicMode, kHeuristicModeValue, 1,
                                   &mode) == 0 &&
      dnn.cudnnBackendFinalize(heuristic_of_graph) == 0 &&
      dnn.cudnnBackendGetAttribute(heuristic_of_graph, kHeuristicResults, kDescriptorValue, 0,
                                   &count, NULL) == 0) {
    if (count > kMostChoices) count = kMostChoices;
    while (made < count && dnn.cudnnBackendCreateDescriptor(kEngineChoice, &choices[made]) == 0) {
      ++made;
    }
    if (made > 0 && dnn.cudnnBackendGetAttribute(heuristic_of_graph, kHeuristicResults,
                                                 kDescriptorValue, made, &filled, choices) != 0) {
      filled = 0;
    }
    for (int64_t i = 0; i < filled && i < made && !plan; ++i) {
      if (is_fit(choices[i], may_reduce)) plan = plan_of(handle, choices[i], workspace);
    }
  }
  while (made > 0) dnn.cudnnBackendDestroyDescriptor(choices[--made]);
  dnn.cudnnBackendDestroyDescriptor(heuristic_of_graph);
  return plan;
}

/* The plan of the convolution, with `finishes` of bias, addend and ReLU too; null when cuDNN has none. */
static void* make_plan(const wick_aot_state* state, const wick_aot_cuda_primitive* w, int finishes,
                       int64_t* workspace) {
  void* const handle = state_of(state)->convolver;
  const int type = type_of(w->dtype), precision = w->dtype == WICK_AOT_FLOAT64 ? 1 : 0;
  const int reduced = w->dtype == WICK_AOT_FLOAT16 || w->dtype == WICK_AOT_BFLOAT16;
  const int modes[2] = {3, 2}; /* the best, and what works always */
  const int add = 0, relu = 100;
  descriptors all;
  void *operations[4], *plan = NULL;
  int64_t steps = finishes ? w->has_addend + w->has_bias + w->relu : 0, count = 0;
  int64_t next = kFirstVirtual;
  all.count = all.status = 0;
  void* const x = describe(&all, kImagesId, type, &w->source, w->source.alignment, 0);
  void* const weights = describe(&all, kWeightsId, type, &w->weight, w->weight.alignment, 0);
  /* What lies between two operations is never in memory. */
#define RESULT                                                                       \
  (steps == 0 ? describe(&all, kResultsId, type, &w->result, w->result.alignment, 0) \
              : describe(&all, next++, precision, &w->result, 16, 1))
  void* y = RESULT;
  operations[count++] = convolution_call(&all, w, x, weights, y);
  if (finishes && w->has_addend) {
    void* const addend = describe(&all, kAddendId, type, &w->result, w->addend_alignment, 0);
    --steps;
    void* const sum = RESULT;
    operations[count++] = pointwise_call(&all, add, precision, y, addend, sum);
    y = sum;
  }
  if (finishes && w->has_bias) {
    wick_aot_cuda_layout of_bias = w->result;
    for (int64_t d = 0; d < of_bias.rank; ++d) {
      of_bias.sizes[d] = d == 1 ? w->result.sizes[1] : 1;
      of_bias.strides[d] = d == 1 ? 1 : w->result.sizes[1];
    }
    void* const bias = describe(&all, kBiasId, type, &of_bias, w->bias_alignment, 0);
    --steps;
    void* const sum = RESULT;
    operations[count++] = pointwise_call(&all, add, precision, y, bias, sum);
    y = sum;
  }
  if (finishes && w->relu) {
    --steps;
    void* const positive = RESULT;
    operations[count++] = pointwise_call(&all, relu, precision, y, NULL, positive);
  }
#undef RESULT
  void* const graph = new_descriptor(&all, kGraph);
  set_attribute(&all, graph, kGraphOperations, kDescriptorValue, count, operations);
  set_attribute(&all, graph, kGraphHandle, kHandleValue, 1, &handle);
  finalize(&all, graph);
  for (int i = 0; i < 2 && all.status == 0 && !plan; ++i) {
    plan = choose_plan(handle, graph, modes[i], reduced || w->reduces != 0, workspace);
  }
  destroy_all(&all);
  return plan;
}

static int prepare_convolution(wick_aot_state* state, prepared* p) {
  const wick_aot_cuda_primitive* w = &p->what;
  const int more = w->has_bias || w->has_addend || w->relu;
  p->finishes = 1;
  p->plan = make_plan(state, w, 1, &p->workspace);
  if (!p->plan && more) {
    p->finishes = 0;
    p->plan = make_plan(state, w, 0, &p->workspace);
  }
  if (p->plan) return wick_cuda_reserve(state, (size_t)p->workspace);
  return wick_cuda_fail(
      state, WICK_AOT_LIBRARY,
      "cuDNN has no engine for a convolution of [%lld, %lld, …, %lld] by [%lld, %lld, …, %lld]",
      (long long)w->source.sizes[0], (long long)w->source.sizes[1],
      (long long)w->source.sizes[w->source.rank - 1], (long long)w->weight.sizes[0],
      (long long)w->weight.sizes[1], (long long)w->weight.sizes[w->weight.rank - 1]);
}

/* Bias, addend and ReLU, where the library does not compute them: a kernel of the model. */
static int finish(wick_aot_state* state, const wick_aot_cuda_primitive* w, const void* bias,
                  const void* addend, void* result) {
  const unsigned block = 256;
  const int64_t most = 32768;
  int64_t total = 1;
  for (int64_t d = 0; d < w->result.rank; ++d) total *= w->result.sizes[d];
  const int64_t blocks = (total + block - 1) / block;
  const int64_t words[] = {(int64_t)(intptr_t)result,
                           (int64_t)(intptr_t)bias,
                           (int64_t)(intptr_t)addend,
                           total,
                           w->result.sizes[1],
                           w->result.strides[1],
                           w->relu};
  return wick_aot_cuda_launch(state, (int32_t)w->finish, (unsigned)(blocks < most ? blocks : most),
                              block, words);
}

static int run_convolution(wick_aot_state* state, const prepared* p, const void* source,
                           const void* weight, const void* bias, const void* addend, void* result) {
  const wick_cuda_state* c = state_of(state);
  const wick_aot_cuda_primitive* w = &p->what;
  int64_t ids[5] = {kImagesId, kWeightsId, kResultsId, 0, 0};
  const void* pointers[5] = {source, weight, result, NULL, NULL};
  void* const workspace = (void*)(uintptr_t)c->workspace;
  descriptors all;
  int64_t count = 3;
  if (p->finishes && w->has_bias) {
    ids[count] = kBiasId;
    pointers[count++] = bias;
  }
  if (p->finishes && w->has_addend) {
    ids[count] = kAddendId;
    pointers[count++] = addend;
  }
  all.count = 0;
  all.status = dnn.cudnnSetStream(c->convolver, c->stream);
  void* const arguments = new_descriptor(&all, kArguments);
  set_attribute(&all, arguments, kArgumentsIds, kIntValue, count, ids);
  set_attribute(&all, arguments, kArgumentsPointers, kPointerValue, count, pointers);
  set_attribute(&all, arguments, kArgumentsWorkspace, kPointerValue, 1, &workspace);
  finalize(&all, arguments);
  if (all.status == 0) all.status = dnn.cudnnBackendExecute(c->convolver, p->plan, arguments);
  const int code = check_convolution(state, all.status);
  destroy_all(&all);
  if (code != WICK_AOT_OK || p->finishes) return code;
  return finish(state, w, bias, addend, result);
}

/* ---- what is prepared ---- */

static void destroy(prepared* p) {
  if (p->product) lt.cublasLtMatmulDescDestroy(p->product);
  if (p->x) lt.cublasLtMatrixLayoutDestroy(p->x);
  if (p->y) lt.cublasLtMatrixLayoutDestroy(p->y);
  if (p->d) lt.cublasLtMatrixLayoutDestroy(p->d);
  if (p->plan) dnn.cudnnBackendDestroyDescriptor(p->plan);
  free(p);
}

static int find_prepared(wick_aot_state* state, const wick_aot_cuda_primitive* what,
                         prepared** found) {
  wick_cuda_state* c = state_of(state);
  int count = 0;
  for (prepared* p = c->prepared; p; p = p->next, ++count) {
    if (memcmp(&p->what, what, sizeof *what) != 0) continue;
    *found = p;
    return WICK_AOT_OK;
  }
  if (c->capturing) {
    return wick_cuda_fail(state, WICK_AOT_LIBRARY,
                          "a call is recorded before its primitives are prepared");
  }
  if (count >= kMostPrepared && !c->captured) {
    /* Those of a caller that never repeats its sizes go, but for those that graphs of the caller have. */
    c->driver->cuStreamSynchronize(c->given);
    for (prepared** at = &c->prepared; *at;) {
      prepared* const p = *at;
      if (p->is_kept) {
        at = &p->next;
      } else {
        *at = p->next;
        destroy(p);
      }
    }
  }
  prepared* const p = (prepared*)calloc(1, sizeof *p);
  if (!p) return wick_cuda_fail(state, WICK_AOT_MEMORY, "memory is exhausted");
  p->what = *what;
  const int code = what->kind == WICK_AOT_CUDA_PRODUCT ? prepare_product(state, p)
                                                       : prepare_convolution(state, p);
  if (code != WICK_AOT_OK) {
    destroy(p);
    return code;
  }
  p->next = c->prepared;
  c->prepared = p;
  *found = p;
  return WICK_AOT_OK;
}

int wick_cuda_prepare(wick_aot_state* state) {
  wick_cuda_state* c = state_of(state);
  const wick_aot_cuda_program* program = state->model->cuda;
  if (program->num_primitives == 0) return WICK_AOT_OK;
  c->by_index = (prepared**)calloc((size_t)program->num_primitives, sizeof *c->by_index);
  if (!c->by_index) return wick_cuda_fail(state, WICK_AOT_MEMORY, "memory is exhausted");
  for (int32_t i = 0; i < program->num_primitives; ++i) {
    if (program->primitives[i].kind == WICK_AOT_CUDA_SIZED) continue;
    const int code = find_prepared(state, &program->primitives[i], &c->by_index[i]);
    if (code != WICK_AOT_OK) return code;
    c->by_index[i]->is_kept = 1;
  }
  return WICK_AOT_OK;
}

int wick_aot_cuda_run(wick_aot_state* state, int32_t index, const wick_aot_cuda_primitive* sized,
                      const void* source, const void* weight, const void* bias, const void* addend,
                      void* result) {
  const wick_cuda_state* c = state_of(state);
  prepared* p = NULL;
  if (sized) {
    const int code = find_prepared(state, sized, &p);
    if (code != WICK_AOT_OK) return code;
  } else {
    p = c->by_index[index];
  }
  if (c->captured) p->is_kept = 1;
  return p->what.kind == WICK_AOT_CUDA_PRODUCT
             ? run_product(state, p, source, weight, bias, result)
             : run_convolution(state, p, source, weight, bias, addend, result);
}

void wick_cuda_close_libraries(wick_aot_state* state) {
  wick_cuda_state* c = state_of(state);
  while (c->prepared) {
    prepared* const p = c->prepared;
    c->prepared = p->next;
    destroy(p);
  }
  free(c->by_index);
  c->by_index = NULL;
  if (c->multiplier) lt.cublasLtDestroy(c->multiplier);
  c->multiplier = NULL;
  if (c->convolver) dnn.cudnnDestroy(c->convolver);
  c->convolver = NULL;
}
