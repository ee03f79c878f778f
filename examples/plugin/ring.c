/* A plugin in C: an operator, and a class whose objects archives can hold.
 *
 *   gcc -shared -fPIC ring.c -o ring.so $(pkg-config --cflags wick)
 *   torchscript-cli run program.py --plugin ./ring.so
 */
#include <stdlib.h>
#include <wick/capi/wick.h>

/* The sum of squares of a float tensor. */
static wick_status energy(void* data, wick_value* const* arguments, size_t count,
                          wick_value** results) {
  (void)data, (void)count;
  wick_value* dense = NULL;
  wick_tensor t = WICK_TENSOR_INIT;
  wick_status status = wick_value_contiguous(arguments[0], &dense);
  if (status) return status;
  status = wick_value_to_tensor(dense, &t);
  if (!status && t.dtype != WICK_FLOAT32) status = wick_fail("expected a tensor of float32");
  if (!status) {
    int64_t n = 1;
    double sum = 0;
    for (size_t d = 0; d < t.dims; ++d) n *= t.sizes[d];
    for (int64_t i = 0; i < n; ++i) sum += (double)((float*)t.data)[i] * ((float*)t.data)[i];
    status = wick_value_from_float(sum, &results[0]);
  }
  wick_value_free(dense);
  return status;
}

/* The last numbers that were pushed. */
typedef struct ring {
  int64_t next;
  int64_t items[4];
} ring;

static wick_status ring_init(void* data, wick_value* const* arguments, size_t count,
                             wick_value** results) {
  (void)data, (void)count, (void)results;
  ring* r = calloc(1, sizeof(ring));
  if (!r) return wick_fail("out of memory");
  return wick_object_hold(arguments[0], r);
}
static wick_status ring_push(void* data, wick_value* const* arguments, size_t count,
                             wick_value** results) {
  (void)data, (void)count, (void)results;
  void* held = NULL;
  int64_t item = 0;
  wick_status status = wick_object_held(arguments[0], "buffers.Ring", &held);
  if (!status) status = wick_value_to_int(arguments[1], &item);
  if (status) return status;
  ring* r = held;
  r->items[r->next++ % 4] = item;
  return WICK_OK;
}
static wick_status ring_sum(void* data, wick_value* const* arguments, size_t count,
                            wick_value** results) {
  (void)data, (void)count;
  void* held = NULL;
  const wick_status status = wick_object_held(arguments[0], "buffers.Ring", &held);
  if (status) return status;
  const ring* r = held;
  return wick_value_from_int(r->items[0] + r->items[1] + r->items[2] + r->items[3], &results[0]);
}
/* Archives hold a list: how many were pushed, and the last four. */
static wick_status ring_state(void* data, void* held, wick_value** state) {
  (void)data;
  const ring* r = held;
  const int64_t numbers[] = {r->next, r->items[0], r->items[1], r->items[2], r->items[3]};
  wick_value* elements[5] = {NULL};
  wick_status status = WICK_OK;
  for (int i = 0; i < 5 && !status; ++i) status = wick_value_from_int(numbers[i], &elements[i]);
  if (!status) status = wick_value_from_list(elements, 5, state);
  for (int i = 0; i < 5; ++i) wick_value_free(elements[i]);
  return status;
}
static wick_status ring_from(void* data, const wick_value* state, void** held) {
  (void)data;
  int64_t numbers[5] = {0};
  size_t size = 0;
  wick_status status = wick_value_size(state, &size);
  if (!status && size != 5) status = wick_fail("expected five numbers");
  for (int i = 0; i < 5 && !status; ++i) {
    wick_value* element = NULL;
    status = wick_value_element(state, i, &element);
    if (!status) status = wick_value_to_int(element, &numbers[i]);
    wick_value_free(element);
  }
  if (!status && numbers[0] < 0) status = wick_fail("expected a number that is not negative");
  ring* r = status ? NULL : malloc(sizeof(ring));
  if (!status && !r) status = wick_fail("out of memory");
  if (status) return status;
  r->next = numbers[0];
  for (int i = 0; i < 4; ++i) r->items[i] = numbers[i + 1];
  *held = r;
  return WICK_OK;
}
static void ring_free(void* data, void* held) {
  (void)data;
  free(held);
}

static wick_status add(void) {
  static const wick_operator operators[] = {
      {sizeof(wick_operator), "energy(Tensor self) -> float", energy, NULL, NULL, NULL, 0, 0},
  };
  static const wick_method methods[] = {
      {sizeof(wick_method), "__init__() -> ()", ring_init, NULL},
      {sizeof(wick_method), "push(int item) -> ()", ring_push, NULL},
      {sizeof(wick_method), "sum() -> int", ring_sum, NULL},
  };
  static const wick_class classes[] = {
      {sizeof(wick_class), "Ring", methods, 3, ring_state, ring_from, ring_free, NULL},
  };
  static const wick_extension extension = {
      sizeof(wick_extension), "buffers", operators, 1, classes, 1};
  return wick_extension_add(&extension);
}

WICK_API const wick_plugin* wick_plugin_entry(void);
WICK_API const wick_plugin* wick_plugin_entry(void) {
  static const wick_plugin plugin = {WICK_PLUGIN_ABI, "ring", NULL, add};
  return &plugin;
}
