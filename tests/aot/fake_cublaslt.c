/* cuBLASLt over the host's memory, with tests/aot/fake_cuda.c: products of float32, one element after the other. Tests compile
 * it as libcublasLt.so.13. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void fake_enqueue(void* of, void (*run)(void*), const void* data, size_t bytes);
int cuPointerGetAttributes(unsigned count, int* attributes, void** values, uint64_t of);

typedef struct {
  int64_t rows, columns, leading, batches, step;
} layout;
typedef struct {
  int32_t transposed[2], epilogue;
  const float* bias;
} product;
typedef struct {
  product how;
  layout a, b, d;
  const float *a_data, *b_data;
  float* result;
  const void* workspace;
} call;

int cublasLtCreate(void** handle) {
  *handle = malloc(1);
  return 0;
}
int cublasLtDestroy(void* handle) {
  free(handle);
  return 0;
}
int cublasLtMatmulDescCreate(void** made, int compute, int scale) {
  (void)compute, (void)scale;
  *made = calloc(1, sizeof(product));
  return 0;
}
int cublasLtMatmulDescSetAttribute(void* of, int attribute, const void* value, size_t bytes) {
  product* p = (product*)of;
  void* const to = attribute == 3   ? (void*)&p->transposed[0]
                   : attribute == 4 ? (void*)&p->transposed[1]
                   : attribute == 7 ? (void*)&p->epilogue
                                    : (void*)&p->bias;
  memcpy(to, value, bytes);
  return 0;
}
int cublasLtMatmulDescDestroy(void* of) {
  free(of);
  return 0;
}
int cublasLtMatrixLayoutCreate(void** made, int type, uint64_t rows, uint64_t columns,
                               int64_t leading) {
  layout* l = (layout*)calloc(1, sizeof *l);
  (void)type;
  l->rows = (int64_t)rows;
  l->columns = (int64_t)columns;
  l->leading = leading;
  *made = l;
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(void* of, int attribute, const void* value, size_t bytes) {
  layout* l = (layout*)of;
  int32_t count = 0;
  if (attribute == 5) {
    memcpy(&count, value, bytes);
    l->batches = count;
  } else {
    memcpy(&l->step, value, bytes);
  }
  return 0;
}
int cublasLtMatrixLayoutDestroy(void* of) {
  free(of);
  return 0;
}
int cublasLtMatmulPreferenceCreate(void** made) {
  *made = malloc(1);
  return 0;
}
int cublasLtMatmulPreferenceSetAttribute(void* of, int attribute, const void* value, size_t bytes) {
  (void)of, (void)attribute, (void)value, (void)bytes;
  return 0;
}
int cublasLtMatmulPreferenceDestroy(void* of) {
  free(of);
  return 0;
}
/* Larger results want more. */
static size_t workspace_for(const layout* d) {
  return 1000 * (size_t)d->columns;
}
int cublasLtMatmulAlgoGetHeuristic(void* handle, void* of, void* a, void* b, void* c, void* d,
                                   void* preference, int most, void* found, int* count) {
  (void)handle, (void)of, (void)a, (void)b, (void)c, (void)preference, (void)most;
  memset(found, 0, 64);
  *(size_t*)((char*)found + 64) = workspace_for((const layout*)d);
  *count = 1;
  return 0;
}

static float element(const layout* l, const float* data, int transposed, int64_t batch, int64_t row,
                     int64_t column) {
  return data[batch * l->step +
              (transposed ? row * l->leading + column : column * l->leading + row)];
}
static void run(void* data) {
  const call* c = (const call*)data;
  /* Nothing comes of memory that is freed. */
  unsigned type = 0;
  int device = 0;
  void* values[2] = {&type, &device};
  cuPointerGetAttributes(2, NULL, values, (uint64_t)(uintptr_t)c->workspace);
  if (type != 2) return;
  const int64_t depth = c->how.transposed[0] ? c->a.rows : c->a.columns;
  for (int64_t batch = 0; batch < c->d.batches; ++batch) {
    for (int64_t column = 0; column < c->d.columns; ++column) {
      for (int64_t row = 0; row < c->d.rows; ++row) {
        double sum = 0;
        for (int64_t k = 0; k < depth; ++k) {
          sum += (double)element(&c->a, c->a_data, c->how.transposed[0], batch, row, k) *
                 (double)element(&c->b, c->b_data, c->how.transposed[1], batch, k, column);
        }
        if (c->how.epilogue & 4) sum += (double)c->how.bias[row];
        if ((c->how.epilogue & 2) && sum < 0) sum = 0;
        c->result[batch * c->d.step + column * c->d.leading + row] = (float)sum;
      }
    }
  }
}
int cublasLtMatmul(void* handle, void* of, const void* alpha, const void* a, void* a_layout,
                   const void* b, void* b_layout, const void* beta, const void* c, void* c_layout,
                   void* d, void* d_layout, const void* algorithm, void* workspace, size_t bytes,
                   void* stream) {
  (void)handle, (void)alpha, (void)beta, (void)c, (void)c_layout, (void)algorithm;
  if (bytes != workspace_for((const layout*)d_layout) || !workspace) return 7;
  call now = {*(product*)of,   *(layout*)a_layout, *(layout*)b_layout, *(layout*)d_layout,
              (const float*)a, (const float*)b,    (float*)d,          workspace};
  fake_enqueue(stream, run, &now, sizeof now);
  return 0;
}
