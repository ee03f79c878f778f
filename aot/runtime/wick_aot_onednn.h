/* Convolutions and large products by oneDNN, for models that were compiled ahead of time. */
#ifndef WICK_AOT_ONEDNN_H
#define WICK_AOT_ONEDNN_H

#include "wick_aot.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WICK_AOT_MAX_DIMS 12 /* as oneDNN has it */

/* The last has no description of its own: each call brings one. */
enum {
  WICK_AOT_CONVOLUTION = 0,
  WICK_AOT_TRANSPOSED_CONVOLUTION = 1,
  WICK_AOT_PRODUCT = 2,
  WICK_AOT_SIZED = 3
};
/* How a residual gets into the result: it lies there already, or is another tensor. */
enum { WICK_AOT_NO_RESIDUAL = 0, WICK_AOT_RESIDUAL_IN_RESULT = 1, WICK_AOT_RESIDUAL_APART = 2 };
enum {
  WICK_AOT_NO_ACTIVATION = 0,
  WICK_AOT_RELU = 1,
  WICK_AOT_SIGMOID = 2,
  WICK_AOT_TANH = 3,
  WICK_AOT_GELU = 4,
  WICK_AOT_SILU = 5,
  WICK_AOT_RELU6 = 6,
  WICK_AOT_HARDSWISH = 7
};

typedef struct wick_aot_layout {
  int32_t rank;
  int64_t sizes[WICK_AOT_MAX_DIMS];
  int64_t strides[WICK_AOT_MAX_DIMS]; /* in elements */
} wick_aot_layout;

/* How a weight lies that is packed while the model is built: in blocks of these sizes of these dimensions, from the
 * outside to the inside. The strides of its layout are those of whole blocks. Sizes that blocks do not divide are
 * filled up with zeros. Without blocks it lies as the layout says. */
typedef struct wick_aot_blocks {
  int32_t count;
  int64_t sizes[WICK_AOT_MAX_DIMS];
  int64_t dims[WICK_AOT_MAX_DIMS];
} wick_aot_blocks;

/* One convolution or product of float32 tensors. */
typedef struct wick_aot_primitive {
  int32_t kind;
  int32_t residual;
  int32_t activation;
  int32_t one_thread;     /* whether a second thread does not pay */
  int64_t weights_offset; /* of the constant weight, in the weights; -1: an argument of the call */
  int64_t bias_offset;    /* of the constant bias; -1: there is none, -2: an argument of the call */
  int32_t spatial;        /* dimensions of a convolution */
  int64_t stride[WICK_AOT_MAX_DIMS];
  int64_t dilation[WICK_AOT_MAX_DIMS]; /* elements that are skipped, as oneDNN counts */
  int64_t padding[WICK_AOT_MAX_DIMS];
  int64_t padding_after[WICK_AOT_MAX_DIMS];
  wick_aot_layout source;
  wick_aot_layout weight;
  wick_aot_layout result;
  wick_aot_blocks packed; /* of the weight */
} wick_aot_primitive;

/* Arguments of one call; those that the primitive has not are null. */
typedef struct wick_aot_arguments {
  const void* source;
  const void* weight;
  const void* bias;
  const void* addend;
  void* result;
} wick_aot_arguments;

/* What wick_aot_init and wick_aot_free call. */
typedef struct wick_aot_library {
  int (*init)(wick_aot_state* state);
  void (*free)(wick_aot_state* state);
} wick_aot_library;
extern const wick_aot_library wick_aot_onednn;

/* Runs primitive `index` of the model. `sized` describes it when its kind is WICK_AOT_SIZED: calls differ in sizes
 * and strides alone. What oneDNN makes for sizes is kept for those that were used last. */
int wick_aot_run(wick_aot_state* state, int32_t index, const wick_aot_primitive* sized,
                 const wick_aot_arguments* arguments);

/* For those who build models: packs the constant weight of a primitive as the library wants it on this machine. The
 * weight lies at `weight` as the primitive says, which has no blocks. Writes the layout and the blocks of
 * what it returns: `bytes` bytes, which the caller frees. Null when the library takes the weight as it is, has no such
 * form for it, or refuses the primitive. */
void* wick_aot_pack(const wick_aot_primitive* primitive, const float* weight,
                    wick_aot_layout* layout, wick_aot_blocks* blocks, size_t* bytes);

#ifdef __cplusplus
}
#endif

#endif
