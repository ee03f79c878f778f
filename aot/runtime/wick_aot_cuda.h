/* Models that were compiled ahead of time for CUDA devices: `torchscript-cli build --device cuda`.
 *
 * They need the driver (libcuda), and cuBLASLt and cuDNN when they have products and convolutions; all of them are opened
 * by wick_aot_init. A state is on the device of the calling thread's current context, or on the first one when there is
 * none. Its memory is taken there by wick_aot_init; states of one model on one device share the weights and the
 * kernels.
 *
 * Tensors may be in memory of that device, at addresses that 16 divides, or in the host's. With tensors of the
 * device alone a call returns when its work is queued on the state's stream; with others it has ended. */
#ifndef WICK_AOT_CUDA_H
#define WICK_AOT_CUDA_H

#include "wick_aot.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- for callers ---- */

/* The stream, a CUstream or cudaStream_t, that further calls are queued on. Null: one of the state's own, which waits
 * for the default stream and is waited for by it. Work of earlier calls must have ended, or come first on the stream. */
int wick_aot_cuda_set_stream(wick_aot_state* state, void* stream);
/* Waits until all calls have ended, and tells what went wrong in them: an index that is out of range is known only then.
 * Otherwise the next call tells. */
int wick_aot_cuda_wait(wick_aot_state* state);
/* Whether calls that come again with the same addresses are one launch of a CUDA graph (1, as at first) or a launch of
 * each kernel. */
int wick_aot_cuda_set_graphs(wick_aot_state* state, int on);

/* ---- for generated code ---- */

/* Code for an architecture, 90 for sm_90: machine code runs on its generation, PTX on it and later ones. */
typedef struct wick_aot_cuda_image {
  int32_t architecture;
  int32_t is_ptx;
  uint64_t offset;
  uint64_t bytes;
} wick_aot_cuda_image;

enum {
  WICK_AOT_CUDA_PRODUCT = 0,
  WICK_AOT_CUDA_CONVOLUTION = 1,
  WICK_AOT_CUDA_TRANSPOSED = 2,
  WICK_AOT_CUDA_SIZED = 3
};
#define WICK_AOT_CUDA_MAX_RANK 5

/* Sizes and strides in elements; alignment of the address in bytes. */
typedef struct wick_aot_cuda_layout {
  int64_t rank;
  int64_t sizes[WICK_AOT_CUDA_MAX_RANK];
  int64_t strides[WICK_AOT_CUDA_MAX_RANK];
  int64_t alignment;
} wick_aot_cuda_layout;

/* A product [B, M, K] by [B, K, N], or a convolution. All members have 64 bits, so that equal ones have equal
 * bytes. */
typedef struct wick_aot_cuda_primitive {
  int64_t kind;
  int64_t dtype;
  int64_t reduces; /* whether factors of float32 may be rounded to TF32 */
  int64_t has_bias;
  int64_t has_addend;
  int64_t relu;
  int64_t
      finish; /* of convolutions: the kernel that adds bias and addend, where cuDNN does not; -1: none */
  int64_t bias_alignment;
  int64_t addend_alignment;
  int64_t spatial;
  int64_t stride[3];
  int64_t padding[3];
  int64_t dilation[3];
  wick_aot_cuda_layout source;
  wick_aot_cuda_layout weight;
  wick_aot_cuda_layout result;
} wick_aot_cuda_primitive;

typedef struct wick_aot_cuda_program {
  const unsigned char* code;
  const wick_aot_cuda_image* images;
  int32_t num_images;
  const char* const* kernels; /* their names */
  int32_t num_kernels;
  const char* const* complaints; /* what checks of kernels end a call with */
  int32_t num_complaints;
  uint64_t memory_bytes; /* for what one call computes */
  const wick_aot_cuda_primitive* primitives;
  int32_t num_primitives;
  int32_t multiplies; /* whether cuBLASLt is needed, and cuDNN */
  int32_t convolves;
  int32_t asks; /* whether the host looks at elements to go on */
} wick_aot_cuda_program;

typedef int (*wick_aot_cuda_function)(wick_aot_state* state, const wick_aot_tensor* inputs,
                                      wick_aot_tensor* outputs, const int64_t* sizes);

extern const struct wick_aot_library wick_aot_cuda;

/* Addresses in the device's memory. */
unsigned char* wick_aot_cuda_memory(const wick_aot_state* state);
const unsigned char* wick_aot_cuda_weights(const wick_aot_state* state);
int64_t wick_aot_cuda_flag(const wick_aot_state* state);

/* A call: copies what lies in the host's memory, and calls `function`, or launches what a call before recorded. */
int wick_aot_cuda_call(wick_aot_state* state, int32_t signature, const int64_t* sizes,
                       const wick_aot_tensor* inputs, wick_aot_tensor* outputs,
                       wick_aot_cuda_function function);
/* All of these queue. `words` is the kernel's parameter. */
int wick_aot_cuda_launch(wick_aot_state* state, int32_t kernel, unsigned grid, unsigned block,
                         const int64_t* words);
int wick_aot_cuda_copy(wick_aot_state* state, void* to, const void* from, size_t bytes);
int wick_aot_cuda_clear(wick_aot_state* state, void* to, size_t bytes);
int wick_aot_cuda_set(wick_aot_state* state, int64_t* to, int64_t value);
/* Runs primitive `index` of the model, or the one that `sized` describes. */
int wick_aot_cuda_run(wick_aot_state* state, int32_t index, const wick_aot_cuda_primitive* sized,
                      const void* source, const void* weight, const void* bias, const void* addend,
                      void* result);
/* Copy between the device and the host, and wait. */
int wick_aot_cuda_read(wick_aot_state* state, void* to, const void* from, size_t bytes);
int wick_aot_cuda_write(wick_aot_state* state, void* to, const void* from, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
