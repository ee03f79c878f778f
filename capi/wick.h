/* Wick for C, and for every language that can call C.
 *
 *   wick_module* model = NULL;
 *   wick_value* x = NULL;
 *   wick_value* y = NULL;
 *   float pixels[784] = {0};
 *   const int64_t sizes[] = {1, 1, 28, 28};
 *   if (wick_module_load("digits.pt", NULL, &model) ||
 *       wick_module_set_training(model, 0) ||
 *       wick_value_from_data(WICK_FLOAT32, sizes, 4, pixels, sizeof(pixels), &x) ||
 *       wick_module_call(model, NULL, &x, 1, NULL, NULL, &y)) {
 *     fprintf(stderr, "%s\n", wick_last_error()->message);
 *   }
 *   wick_value_free(y);
 *   wick_value_free(x);
 *   wick_module_free(model);
 *
 * Errors. Every function that can fail returns a wick_status: WICK_OK, which is 0, or what went
 * wrong. wick_last_error() tells more of the last failure on the calling thread. A function that
 * fails changes nothing, but a call whose program raised after it changed something. A handle that
 * must not be NULL and is, is WICK_ERROR_USAGE. No C++ exception leaves a function.
 *
 * Ownership. What a function stores through its last argument belongs to the caller, who frees it
 * with the function whose name ends in _free; freeing NULL does nothing. Handles that are passed in
 * stay the caller's. Values are shared as in Python: two handles may mean one list, and a list that
 * was made of values goes on without their handles. Pointers into a value (texts, elements and sizes
 * of tensors) are valid until its handle is freed, and while nobody changes the value.
 *
 * Structs that may grow begin with their size, struct_size: a caller writes sizeof of the type there
 * before the struct is handed over, {sizeof(wick_operator), "f(int x) -> int", f}, and a function
 * that is given another size than it can work with is WICK_ERROR_USAGE. In arrays all elements have
 * one size. In wick_error the library writes it: members beyond it are not there.
 *
 * Threads. Programs and modules may be called from any number of threads at a time. Other functions
 * may be called at a time as long as none of them changes or frees what another one uses:
 * wick_value_append, wick_value_insert, wick_module_set_attribute, wick_module_set_training,
 * wick_module_to and wick_module_to_dtype change. wick_interrupt_set may always be called.
 *
 * Texts are UTF-8. Those that are passed in end with a zero byte unless a length stands beside them.
 */
#ifndef WICK_CAPI_WICK_H_
#define WICK_CAPI_WICK_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header, by semantic versioning; wick_version() is that of the library. */
#define WICK_VERSION_MAJOR 0
#define WICK_VERSION_MINOR 1
#define WICK_VERSION_PATCH 0

#define WICK_API __attribute__((visibility("default")))

typedef struct wick_program wick_program;     /* compiled source */
typedef struct wick_module wick_module;       /* a loaded model */
typedef struct wick_value wick_value;         /* any value of a program */
typedef struct wick_interrupt wick_interrupt; /* ends runs from another thread */

/* ---- Errors ---------------------------------------------------------------------------------- */

typedef enum wick_status {
  WICK_OK = 0,
  WICK_ERROR_USAGE = 1,       /* wrong arguments, no such function or attribute, a wrong type */
  WICK_ERROR_COMPILE = 2,     /* the source is not valid */
  WICK_ERROR_RUNTIME = 3,     /* the program raised, or an operator refused its arguments */
  WICK_ERROR_LOAD = 4,        /* a file is not what it claims to be, or cannot be read */
  WICK_ERROR_MEMORY = 5,      /* a limit of memory, or memory itself, is exhausted; one tensor, text or
                                 list that wick_set_memory_limit does not allow is
                                 WICK_ERROR_RUNTIME, a RuntimeError as in PyTorch */
  WICK_ERROR_TIME = 6,        /* a limit of time or steps is exhausted */
  WICK_ERROR_INTERRUPTED = 7, /* wick_interrupt_set was called */
  WICK_ERROR_INTERNAL = 8     /* a bug of Wick */
} wick_status;

typedef struct wick_error {
  size_t struct_size; /* that the library knows */
  wick_status status;
  const char* message;    /* the whole text, ready to print; what a program raised has \x00 for zeros */
  const char* class_name; /* what the program raised: "ValueError"; else "" */
  const char* file;       /* the place in the source, as far as there is one; else "" */
  size_t line;            /* from 1; 0: no place */
  size_t column;          /* from 1; 0: no place */
} wick_error;

/* The last failure on the calling thread; its status is WICK_OK before the first. Never NULL. Valid
 * until the next failure on this thread. */
WICK_API const wick_error* wick_last_error(void);

/* "0.1.0". */
WICK_API const char* wick_version(void);

/* ---- Settings -------------------------------------------------------------------------------- */

/* For the whole process: threads within one operator (1 to 1024), bytes that may be held (0: any). */
WICK_API wick_status wick_set_threads(int threads);
WICK_API wick_status wick_set_memory_limit(uint64_t bytes);
/* Lets the process's generator of random numbers start again, as torch.manual_seed does. */
WICK_API wick_status wick_set_seed(uint64_t seed);

/* Whether calls on the calling thread are recorded for gradients. Before the first use of this,
 * wick_module_call does not record, as inference expects, and wick_program_call does; from then on
 * both do as they are told. A model that computes gradients itself, such as forces, needs 1. Calls
 * from a wick_function that the engine runs go by the mode of that run instead. */
WICK_API wick_status wick_set_grad(int on);

/* Takes the texts that programs give to warnings.warn(); NULL: "Warning: ..." goes to the standard
 * error, as at first. `data` is handed to it. It is called from any thread, and from
 * several at a time; a call that began may end after another handler is set. */
WICK_API wick_status wick_set_warning_handler(void (*handler)(void* data, const char* message),
                                              void* data);
/* Sets the engine's log of its work: `files` names source files as the environment variable WICK_LOG
 * does, "" turns logging off. Each line, with its end of line, goes to the handler, from any thread,
 * one at a time; NULL: to the standard error. The handler must call no function of this file. */
WICK_API wick_status wick_set_log(const char* files, void (*handler)(void* data, const char* line),
                                  void* data);

/* ---- Limits ---------------------------------------------------------------------------------- */

/* What a call, a compilation or loading may use. Begin with WICK_LIMITS_NONE; what is 0 is not
 * limited. NULL instead of a pointer to limits is no limit. */
typedef struct wick_limits {
  size_t struct_size;                  /* sizeof(wick_limits), so that later versions may add to it */
  double seconds;
  uint64_t memory;                     /* bytes beyond what was held before */
  uint64_t steps;                      /* iterations of loops and calls; of calls only */
  const wick_interrupt* interrupt;     /* may be NULL */
} wick_limits;
#define WICK_LIMITS_NONE \
  { sizeof(wick_limits), 0, 0, 0, NULL }

WICK_API wick_status wick_interrupt_new(wick_interrupt** interrupt);
/* Every run under limits with this interrupt ends soon, now and until it is cleared. From any thread,
 * also from a signal handler. */
WICK_API wick_status wick_interrupt_set(wick_interrupt* interrupt);
WICK_API wick_status wick_interrupt_clear(wick_interrupt* interrupt);
/* Runs that still use it go on without being interrupted. */
WICK_API void wick_interrupt_free(wick_interrupt* interrupt);

/* Element types of tensors. The numbers are PyTorch's. */
typedef enum wick_dtype {
  WICK_UINT8 = 0,
  WICK_INT8 = 1,
  WICK_INT16 = 2,
  WICK_INT32 = 3,
  WICK_INT64 = 4,
  WICK_FLOAT16 = 5,
  WICK_FLOAT32 = 6,
  WICK_FLOAT64 = 7,
  WICK_COMPLEX64 = 9,
  WICK_COMPLEX128 = 10,
  WICK_BOOL8 = 11,
  WICK_QINT8 = 12, /* integers that stand for real numbers: of tensors that programs made */
  WICK_QUINT8 = 13,
  WICK_QINT32 = 14,
  WICK_BFLOAT16 = 15,
  WICK_QUINT4X2 = 16
} wick_dtype;

/* ---- Programs -------------------------------------------------------------------------------- */

/* Compiles functions and classes. `file_name` stands in messages; NULL: "<string>". */
WICK_API wick_status wick_compile(const char* source, const char* file_name,
                                  const wick_limits* limits, wick_program** program);
/* A list of the names of the functions. */
WICK_API wick_status wick_program_functions(const wick_program* program, wick_value** names);
/* Calls a function with arguments by position, and by name: `named` is a dict with texts as keys,
 * or NULL. Arguments are converted as Python's are. A function without result gives None. */
WICK_API wick_status wick_program_call(const wick_program* program, const char* function,
                                       wick_value* const* arguments, size_t num_arguments,
                                       const wick_value* named, const wick_limits* limits,
                                       wick_value** result);
WICK_API void wick_program_free(wick_program* program);

/* ---- Modules --------------------------------------------------------------------------------- */

/* Reads what torch.jit.save wrote. A file is mapped, and must not change while the module lives;
 * memory is copied. `name` stands in messages; NULL: "<memory>". */
WICK_API wick_status wick_module_load(const char* path, const wick_limits* limits,
                                      wick_module** module);
WICK_API wick_status wick_module_load_memory(const void* data, size_t bytes, const char* name,
                                             const wick_limits* limits, wick_module** module);
/* The same for a device: "cpu", "cuda", "cuda:1". All tensors go there, wherever they were saved, and
 * devices that the code names become this one. NULL, and the functions above: each tensor goes to the
 * device that it was saved on, or to the CPU when this machine lacks that. WICK_ERROR_RUNTIME when it
 * lacks `device`. */
WICK_API wick_status wick_module_load_on(const char* path, const char* device,
                                         const wick_limits* limits, wick_module** module);
WICK_API wick_status wick_module_load_memory_on(const void* data, size_t bytes, const char* name,
                                                const char* device, const wick_limits* limits,
                                                wick_module** module);
/* A map from devices that tensors were saved on to those that they go to: a table, a function, or both.
 * Begin with WICK_DEVICE_MAP_INIT. */
typedef struct wick_device_map {
  size_t struct_size;           /* sizeof(wick_device_map) */
  const char* const* saved_on;  /* names as they are in the file: "cuda:3", "xla:0" */
  const char* const* devices;   /* one for each of these names: "cpu", "cuda:0" */
  size_t count;
  /* Asked for names that the table lacks, by the thread that loads; may be NULL. Stores a device, whose
   * text must stay until loading ends, or leaves *device as it is, NULL: as without a map. Another
   * status than WICK_OK ends loading, with the thread's last error. */
  wick_status (*find)(void* data, const char* saved_on, const char** device);
  void* data; /* for the function */
} wick_device_map;
#define WICK_DEVICE_MAP_INIT \
  { sizeof(wick_device_map), NULL, NULL, 0, NULL, NULL }
/* The same with a map; NULL: as without one. Devices that the code names follow it, too. A device of the
 * map that this machine lacks is WICK_ERROR_RUNTIME where a tensor or the code asks for it. */
WICK_API wick_status wick_module_load_mapped(const char* path, const wick_device_map* map,
                                             const wick_limits* limits, wick_module** module);
WICK_API wick_status wick_module_load_memory_mapped(const void* data, size_t bytes,
                                                    const char* name, const wick_device_map* map,
                                                    const wick_limits* limits,
                                                    wick_module** module);
/* Calls a method; NULL: calls the module itself, forward with its hooks. Otherwise as
 * wick_program_call. */
WICK_API wick_status wick_module_call(const wick_module* module, const char* method,
                                      wick_value* const* arguments, size_t num_arguments,
                                      const wick_value* named, const wick_limits* limits,
                                      wick_value** result);
/* A list of the names of the methods. */
WICK_API wick_status wick_module_methods(const wick_module* module, wick_value** names);
/* Dicts of tensors by their names, "layer1.weight", with those of submodules. */
WICK_API wick_status wick_module_parameters(const wick_module* module, wick_value** parameters);
WICK_API wick_status wick_module_buffers(const wick_module* module, wick_value** buffers);
/* An attribute by its name, of a submodule by a name with dots. Setting converts the value to the
 * declared type as Python does, or fails. */
WICK_API wick_status wick_module_get_attribute(const wick_module* module, const char* name,
                                               wick_value** value);
WICK_API wick_status wick_module_set_attribute(wick_module* module, const char* name,
                                               const wick_value* value);
/* For the module and all below it: 1 for training, 0 for evaluation, which results usually want. */
WICK_API wick_status wick_module_set_training(wick_module* module, int on);
WICK_API wick_status wick_module_is_training(const wick_module* module, int* on);
/* Moves all tensors of the module and of what it holds to a device, in place: parameters, buffers,
 * other attributes, and constants in the code of their classes. Devices are "cpu", "cuda" (the
 * calling thread's current one) and "cuda:0". Arguments of calls must be there, too. Nobody may call
 * the module meanwhile. WICK_ERROR_RUNTIME when there is no such device or its memory is exhausted. */
WICK_API wick_status wick_module_to(wick_module* module, const char* device);
/* Converts floating-point parameters and buffers, in place, to a floating-point or complex type. */
WICK_API wick_status wick_module_to_dtype(wick_module* module, wick_dtype dtype);
/* Writes a file that torch.jit.load reads. A file of that name is replaced when the new one is
 * complete and on the disk; otherwise it stays as it was. What cannot be saved is found before
 * anything is written, and is WICK_ERROR_RUNTIME, as are a full disk and a folder that may not be
 * written; the message says which it is. */
WICK_API wick_status wick_module_save(const wick_module* module, const char* path,
                                      const wick_limits* limits);
/* The bytes of that file, as a value that is a string (wick_value_to_string). */
WICK_API wick_status wick_module_save_memory(const wick_module* module, const wick_limits* limits,
                                             wick_value** bytes);
/* A module is also a value, and back. Both mean the same module. */
WICK_API wick_status wick_module_to_value(const wick_module* module, wick_value** value);
WICK_API wick_status wick_module_from_value(const wick_value* value, wick_module** module);
WICK_API void wick_module_free(wick_module* module);

/* ---- Values ---------------------------------------------------------------------------------- */

typedef enum wick_kind {
  WICK_NONE = 0,
  WICK_INT = 1,
  WICK_FLOAT = 2,
  WICK_BOOL = 3,
  WICK_STRING = 4,
  WICK_TENSOR = 5,
  WICK_LIST = 6,
  WICK_TUPLE = 7,
  WICK_DICT = 8,
  WICK_OBJECT = 9, /* an instance of a class; a module */
  WICK_OTHER = 10  /* complex numbers, devices, enums, …: wick_value_repr shows them */
} wick_kind;

WICK_API wick_status wick_value_none(wick_value** value);
WICK_API wick_status wick_value_from_int(int64_t number, wick_value** value);
WICK_API wick_status wick_value_from_float(double number, wick_value** value);
WICK_API wick_status wick_value_from_bool(int truth, wick_value** value);
WICK_API wick_status wick_value_from_string(const char* text, size_t bytes, wick_value** value);
/* Containers of what the handles mean. Their elements need not be of one type as long as they suit
 * where the container is passed. */
WICK_API wick_status wick_value_from_list(wick_value* const* elements, size_t count,
                                          wick_value** value);
WICK_API wick_status wick_value_from_tuple(wick_value* const* elements, size_t count,
                                           wick_value** value);
WICK_API wick_status wick_value_from_dict(wick_value* const* keys, wick_value* const* values,
                                          size_t count, wick_value** value);
/* Another handle on the same value. */
WICK_API wick_status wick_value_copy(const wick_value* value, wick_value** copy);
WICK_API void wick_value_free(wick_value* value);

WICK_API wick_status wick_value_kind(const wick_value* value, wick_kind* kind);
/* Each fails for values of another kind; an int is also a float. */
WICK_API wick_status wick_value_to_int(const wick_value* value, int64_t* number);
WICK_API wick_status wick_value_to_float(const wick_value* value, double* number);
WICK_API wick_status wick_value_to_bool(const wick_value* value, int* truth);
/* The text ends with a zero byte, and may hold others. `bytes` may be NULL. */
WICK_API wick_status wick_value_to_string(const wick_value* value, const char** text,
                                          size_t* bytes);
/* Elements of a list, tuple or dict: how many, and which. An index may count from the end (-1). */
WICK_API wick_status wick_value_size(const wick_value* value, size_t* count);
WICK_API wick_status wick_value_element(const wick_value* value, int64_t index,
                                        wick_value** element);
/* A dict's entries in the order in which they came. */
WICK_API wick_status wick_value_entry(const wick_value* dict, size_t index, wick_value** key,
                                      wick_value** value);
/* The value of a dict's key. WICK_ERROR_RUNTIME of class KeyError when there is none. */
WICK_API wick_status wick_value_find(const wick_value* dict, const wick_value* key,
                                     wick_value** value);
/* What has a name: an entry of a dict with texts as keys, a field of a named tuple, an attribute of an
 * object. */
WICK_API wick_status wick_value_field(const wick_value* value, const char* name,
                                      wick_value** field);
/* Changes a list or dict. The element must be of the type that the container was made with. A list
 * that was made of no elements takes the type of its first one as long as nobody else holds the list. */
WICK_API wick_status wick_value_append(wick_value* list, const wick_value* element);
WICK_API wick_status wick_value_insert(wick_value* dict, const wick_value* key,
                                       const wick_value* value);
/* As Python shows it, and its type ("List[int]"), as a value that is a string. */
WICK_API wick_status wick_value_repr(const wick_value* value, wick_value** text);
WICK_API wick_status wick_value_type(const wick_value* value, wick_value** text);

/* ---- Tensors --------------------------------------------------------------------------------- */

typedef struct wick_tensor {
  size_t struct_size; /* sizeof(wick_tensor), also where a function fills in the others */
  wick_dtype dtype;
  size_t dims;
  const int64_t* sizes;
  const int64_t* strides; /* in elements */
  void* data;             /* the first element; NULL when there is none */
  int contiguous;         /* 1: row-major without gaps */
} wick_tensor;
#define WICK_TENSOR_INIT \
  { sizeof(wick_tensor), WICK_UINT8, 0, NULL, NULL, NULL, 0 }

/* A tensor with a copy of `bytes` bytes, which must be as many as its elements take. For booleans, every
 * byte but 0 is true. */
WICK_API wick_status wick_value_from_data(wick_dtype dtype, const int64_t* sizes, size_t dims,
                                          const void* data, size_t bytes, wick_value** value);
/* How a tensor lies in memory; tensor->struct_size must be set before: wick_tensor row =
 * WICK_TENSOR_INIT. Writing through `data` changes the tensor for everybody. WICK_ERROR_USAGE for
 * tensors of other devices (wick_tensor_to brings them), and for those that are sparse or quantized. */
WICK_API wick_status wick_value_to_tensor(const wick_value* value, wick_tensor* tensor);
/* The same elements in row-major order without gaps: the value itself, or a copy. */
WICK_API wick_status wick_value_contiguous(const wick_value* value, wick_value** result);

/* The description of any tensor, on whatever device. The sizes are valid as those of wick_tensor are; the
 * device's name ("cpu", "cuda:0") as long as the process lives. */
WICK_API wick_status wick_tensor_dtype(const wick_value* tensor, wick_dtype* dtype);
WICK_API wick_status wick_tensor_sizes(const wick_value* tensor, const int64_t** sizes,
                                       size_t* dims);
WICK_API wick_status wick_tensor_device(const wick_value* tensor, const char** device);
/* The same elements on a device, or of another type: the value itself when it is so already, or a
 * copy. WICK_ERROR_RUNTIME when there is no such device or its memory is exhausted. */
WICK_API wick_status wick_tensor_to(const wick_value* tensor, const char* device,
                                    wick_value** result);
WICK_API wick_status wick_tensor_to_dtype(const wick_value* tensor, wick_dtype dtype,
                                          wick_value** result);
/* How many devices of a type there are ("cuda"); 0 when the driver or the library is absent, and in
 * an engine that was built without it. */
WICK_API wick_status wick_device_count(const char* type, int* count);

/* DLPack, without copies, for memory of the CPU. The structs are those of dlpack/dlpack.h, which need
 * not be included. Taking one in, the engine owns it from then on and calls its deleter when the last
 * tensor on it is gone; when this fails it stays the caller's. Giving one out, the receiver calls the
 * deleter; the elements live until then. The versioned form also carries whether memory may be
 * written: the older one is refused for memory that may not. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;
WICK_API wick_status wick_value_from_dlpack(struct DLManagedTensor* tensor, wick_value** value);
WICK_API wick_status wick_value_from_dlpack_versioned(struct DLManagedTensorVersioned* tensor,
                                                      wick_value** value);
WICK_API wick_status wick_value_to_dlpack(const wick_value* value,
                                          struct DLManagedTensor** tensor);
WICK_API wick_status wick_value_to_dlpack_versioned(const wick_value* value,
                                                    struct DLManagedTensorVersioned** tensor);

/* ---- Operators and classes of one's own ------------------------------------------------------ */

/* What an operator or method does: stores a new handle for each result of its schema through
 * `results`, whose entries are NULL before. The arguments are handles for the time of the call. On
 * failure it returns what the wick_ function returned that failed, or wick_fail(...); handles that it
 * stored are freed. An argument's own handle is no result, and no handle is two: wick_value_copy makes
 * another. Called from any thread, and from several at a time. */
typedef wick_status (*wick_function)(void* data, wick_value* const* arguments, size_t num_arguments,
                                     wick_value** results);

/* Notes a message as the thread's last error, and returns WICK_ERROR_RUNTIME. */
WICK_API wick_status wick_fail(const char* message);

typedef struct wick_operator {
  size_t struct_size;      /* sizeof(wick_operator) */
  const char* schema;      /* without the namespace: "clip(Tensor self, float limit) -> Tensor" */
  wick_function function;
  void* data;              /* for the function */
  const char* result_like; /* the argument whose dtype, sizes and device the result has, or NULL */
  const char* derivative;  /* lines "argument: expression", "others", "none", or NULL: an error when
                              a gradient is asked for */
  int random;              /* 1: other results for the same arguments */
  int side_effects;        /* 1: does something beside its results */
} wick_operator;

typedef struct wick_method {
  size_t struct_size; /* sizeof(wick_method) */
  const char* schema; /* without the object: "push(int x) -> ()"; "__init__(int x) -> ()" calls
                         wick_object_hold */
  wick_function function; /* the object is the first argument */
  void* data;
} wick_method;

/* A class whose objects hold a pointer. Objects can be saved when it has both get_state and
 * set_state. `data` is handed to all three. */
typedef struct wick_class {
  size_t struct_size; /* sizeof(wick_class) */
  const char* name; /* "Stack": torch.classes.NAMESPACE.Stack */
  const wick_method* methods;
  size_t num_methods;
  wick_status (*get_state)(void* data, void* held, wick_value** state);
  wick_status (*set_state)(void* data, const wick_value* state, void** held);
  void (*free_held)(void* data, void* held); /* may be NULL */
  void* data;
} wick_class;

typedef struct wick_extension {
  size_t struct_size;     /* sizeof(wick_extension) */
  const char* name_space; /* torch.ops.NAMESPACE; an identifier other than aten and prim */
  const wick_operator* operators;
  size_t num_operators;
  const wick_class* classes;
  size_t num_classes;
} wick_extension;

/* Adds all of it for as long as the process lives, or nothing: WICK_ERROR_USAGE for a schema that
 * cannot be read, a name that is taken, a derivative that does not compile. Texts and arrays are
 * copied; functions and `data` must stay. */
WICK_API wick_status wick_extension_add(const wick_extension* extension);

/* What an object of a class "NAMESPACE.NAME" holds. Valid as long as the object. */
WICK_API wick_status wick_object_held(const wick_value* object, const char* class_name, void** held);
/* In __init__, once: what the new object holds, which belongs to it from then on; when this fails it
 * stays the caller's. */
WICK_API wick_status wick_object_hold(wick_value* object, void* held);
/* A new object, which owns `held`; when this fails it stays the caller's. */
WICK_API wick_status wick_object_new(const char* class_name, void* held, wick_value** object);

/* ---- Plugins --------------------------------------------------------------------------------- */

#define WICK_PLUGIN_ABI 2u

/* What a library that is loaded exports:
 *   WICK_API const wick_plugin* wick_plugin_entry(void);
 * It is not linked with the engine, but finds it in the program that loads it. */
typedef struct wick_plugin {
  uint32_t abi;            /* WICK_PLUGIN_ABI; always the first member */
  const char* name;        /* for messages */
  const char* cxx_version; /* NULL; C++ uses WICK_PLUGIN of extensions/plugin.h */
  wick_status (*add)(void); /* calls wick_extension_add, and returns its status */
} wick_plugin;

/* Loads the library and lets it add what it has; a second time does nothing. It is never unloaded.
 * WICK_ERROR_LOAD when the file is no plugin, was built for another version, or cannot add what it
 * has. A plugin is code that runs with all rights of the process. */
WICK_API wick_status wick_plugin_load(const char* path);

#ifdef __cplusplus
}
#endif

#endif /* WICK_CAPI_WICK_H_ */
