/* The runtime of models that were compiled ahead of time by `torchscript-cli build`.
 *
 * A model NAME has a header NAME.h with NAME_init, NAME_free and a function for each method, NAME_forward,
 * which are calls of the functions here. C99 and later, C++17 and later.
 *
 * A state belongs to one call at a time. Several threads take a state each; they share the pages of the
 * file of weights. Functions return WICK_AOT_OK or one of the other codes, and then
 * wick_aot_error(state) says what went wrong. */
#ifndef WICK_AOT_H
#define WICK_AOT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this interface; a model that was written for another does not compile. */
#define WICK_AOT_VERSION 6
#define WICK_AOT_MAX_RANK 8
#define WICK_AOT_MAX_SYMBOLS 8

enum {
  WICK_AOT_OK = 0,
  WICK_AOT_ARGUMENT =
      1,                /* an argument does not fit the signature that the model was compiled for */
  WICK_AOT_WEIGHTS = 2, /* the weights cannot be read, or are those of another model or version */
  WICK_AOT_MEMORY = 3,  /* memory is exhausted */
  WICK_AOT_LIBRARY = 4, /* oneDNN refused; of models for CUDA: cuBLASLt or cuDNN */
  WICK_AOT_RAISED = 5,  /* the program raises for these values: an index is out of bounds */
  WICK_AOT_DEVICE = 6 /* of models for CUDA: no driver, no GPU that fits, or a call of it failed */
};

/* Numbers of dtypes are PyTorch's. */
enum {
  WICK_AOT_UINT8 = 0,
  WICK_AOT_INT8 = 1,
  WICK_AOT_INT16 = 2,
  WICK_AOT_INT32 = 3,
  WICK_AOT_INT64 = 4,
  WICK_AOT_FLOAT16 = 5,
  WICK_AOT_FLOAT32 = 6,
  WICK_AOT_FLOAT64 = 7,
  WICK_AOT_COMPLEX64 = 9, /* pairs of a real and an imaginary float32 */
  WICK_AOT_COMPLEX128 = 10,
  WICK_AOT_BOOL = 11,
  WICK_AOT_BFLOAT16 = 15
};

/* The caller's tensor: row-major, of exactly the dtype and rank of the model's signature, with sizes that it
 * takes. Where elements decide sizes of a result the caller's are the largest ones, for which there is memory; the call
 * sets those that it has, whose elements lie side by side from the beginning. */
typedef struct wick_aot_tensor {
  void* data;
  int32_t dtype;
  int32_t rank;
  int64_t sizes[WICK_AOT_MAX_RANK];
} wick_aot_tensor;

/* A size that calls may choose: minimum, minimum + step, and so on up to maximum. */
typedef struct wick_aot_symbol {
  const char* name;
  int64_t minimum;
  int64_t maximum;
  int64_t step;
} wick_aot_symbol;

/* Sizes of slots below zero: that of symbol number `n`, and one that the sizes of the inputs decide. */
#define WICK_AOT_SYMBOL(n) (-1 - (n))
#define WICK_AOT_COMPUTED (-1000)

/* What an argument or a result is called and what it must be. Elements decide those sizes of a result whose bits are set in
 * `decided`, size 0 the lowest one; `sizes` tells the largest ones. */
typedef struct wick_aot_slot {
  const char* name;
  int32_t dtype;
  int32_t rank;
  int64_t sizes[WICK_AOT_MAX_RANK];
  uint32_t decided;
} wick_aot_slot;

/* One method for arguments of one kind. */
typedef struct wick_aot_signature {
  const char* method;
  const wick_aot_slot* inputs;
  const wick_aot_slot* outputs;
  int32_t num_inputs;
  int32_t num_outputs;
  const wick_aot_symbol* symbols; /* null: all sizes are fixed */
  int32_t num_symbols;
  /* Writes the sizes of an output for these sizes of the symbols, the largest where elements decide them;
   * null, or why there is none. */
  const char* (*shape)(const int64_t* symbols, int32_t output, int64_t* sizes);
} wick_aot_signature;

/* Random numbers, as PyTorch's generator of the CPU draws them: the Mersenne Twister of 32 bits. */
typedef struct wick_aot_generator {
  uint32_t words[624];
  int32_t next; /* of the words; 624: all are taken */
  int32_t has_normal;
  double normal; /* when has_normal: what the last pair of normal numbers has left */
} wick_aot_generator;

struct wick_aot_library;
struct wick_aot_primitive;
struct wick_aot_cuda_program;

/* What the compiler knows of a model. */
typedef struct wick_aot_model {
  uint32_t version; /* WICK_AOT_VERSION */
  const char* name;
  uint64_t fingerprint; /* of the program and its weights */
  uint64_t weights_bytes;
  uint64_t memory_bytes;                /* for what one call computes */
  const wick_aot_signature* signatures; /* those of one method side by side */
  int32_t num_signatures;
  const void* embedded;                   /* weights in the program; null: in a file */
  const struct wick_aot_library* library; /* of convolutions and large products; null: none */
  const struct wick_aot_primitive* primitives;
  int32_t num_primitives;
  const struct wick_aot_cuda_program* cuda; /* null: a model for the CPU */
  int32_t draws;                            /* whether it draws random numbers */
} wick_aot_model;

/* Of one thread. Its members are the runtime's. */
typedef struct wick_aot_state {
  const wick_aot_model* model;
  const unsigned char* weights;
  unsigned char* memory;
  void* mapping;
  size_t mapping_bytes;
  void* library;
  wick_aot_generator* generator; /* null: the model draws no random numbers */
  char error[512];
} wick_aot_state;

/* Makes a state ready. `weights` is the path of the file that was written beside the program; it is not
 * looked at when the weights are embedded, and may be null then. After an error the state needs no
 * wick_aot_free. */
int wick_aot_init(const wick_aot_model* model, wick_aot_state* state, const char* weights);
void wick_aot_free(wick_aot_state* state);
/* Lets the random numbers of the state begin anew, as torch.manual_seed() does. A new state begins as a new process of
 * PyTorch. Nothing when the model draws none. */
void wick_aot_seed(wick_aot_state* state, uint64_t seed);
void wick_aot_seed_generator(wick_aot_generator* generator, uint64_t seed);
/* "" when nothing went wrong. Valid as long as the state. */
const char* wick_aot_error(const wick_aot_state* state);

/* The bytes of a tensor like this one; of slots whose sizes are fixed. */
size_t wick_aot_bytes(const wick_aot_slot* slot);
size_t wick_aot_tensor_bytes(const wick_aot_tensor* tensor);

/* For generated code: finds the signature that the arguments of a call have among `count` from `first` on, and the
 * sizes of its symbols; looks at the outputs, and notes an error. */
int wick_aot_select(wick_aot_state* state, int32_t first, int32_t count,
                    const wick_aot_tensor* inputs, const wick_aot_tensor* outputs,
                    int32_t* signature, int64_t* symbols);
/* The same for the inputs alone; writes dtypes, ranks and sizes of the outputs. */
int wick_aot_outputs(wick_aot_state* state, int32_t first, int32_t count,
                     const wick_aot_tensor* inputs, wick_aot_tensor* outputs);
int wick_aot_fail(wick_aot_state* state, int code, const char* message);
/* An error unless the size, which elements decide, is from 0 to `most`; `by` tells who needs it. */
int wick_aot_size(wick_aot_state* state, const char* by, int64_t most, int64_t size);

#ifdef __cplusplus
}
#endif

#endif
