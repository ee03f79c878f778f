/* A CUDA driver whose device is the host's memory, for compiled models: tests compile it as libcuda.so.1. Kernels
 * do nothing but call a function of the test; copies, streams and graphs do what they are for. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t address;
typedef void (*work_function)(void* data);
typedef struct work {
  struct work* next;
  work_function run;
  char data[4200];
} work;
typedef struct {
  int capturing;
  work* first;
  work** last;
} stream;

/* ---- for tests ---- */

enum { kMostBlocks = 256 };
static struct {
  char* begin;
  size_t bytes;
} blocks[kMostBlocks];
static char failing[64];
static int failing_after;
static int launches, graph_launches, copies_from_host, allocations;
static int devices = 1, major = 9, minor = 0;
static void (*on_launch)(const char* name, int64_t word);

void fake_device(int count, int its_major, int its_minor) {
  devices = count;
  major = its_major;
  minor = its_minor;
}
/* The next call but `after` of this function fails. */
void fake_failure(const char* name, int after) {
  snprintf(failing, sizeof failing, "%s", name);
  failing_after = after;
}
/* It is given the kernel's name and the first word of its parameter. */
void fake_on_launch(void (*call)(const char*, int64_t)) {
  on_launch = call;
}
int fake_launches(void) {
  return launches;
}
int fake_graph_launches(void) {
  return graph_launches;
}
int fake_copies(void) {
  return copies_from_host;
}
/* Of the device, that are not freed. */
int fake_allocations(void) {
  return allocations;
}

/* Does it now, or when the graph is launched that the stream is captured for. */
void fake_enqueue(void* of, work_function run, const void* data, size_t bytes) {
  stream* s = (stream*)of;
  if (!s || !s->capturing) {
    work now;
    memcpy(now.data, data, bytes);
    run(now.data);
    return;
  }
  work* later = (work*)calloc(1, sizeof *later);
  later->run = run;
  memcpy(later->data, data, bytes);
  *s->last = later;
  s->last = &later->next;
}

static int fails(const char* name) {
  if (strcmp(name, failing) != 0) return 0;
  if (failing_after-- > 0) return 0;
  failing[0] = '\0';
  return 1;
}
#define MAY_FAIL(error) \
  if (fails(__func__)) return error

/* ---- the driver ---- */

int cuInit(unsigned flags) {
  MAY_FAIL(999);
  (void)flags;
  return devices > 0 ? 0 : 100;
}
int cuDriverGetVersion(int* version) {
  *version = fails(__func__) ? 11040 : 13000;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = devices;
  return 0;
}
int cuDeviceGetName(char* name, int length, int device) {
  (void)device;
  snprintf(name, (size_t)length, "Fake");
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  *value = attribute == 75 ? major : minor;
  return 0;
}
static void* current;
static int the_context;
int cuDevicePrimaryCtxRetain(void** context, int device) {
  MAY_FAIL(2);
  (void)device;
  *context = &the_context;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  (void)device;
  return 0;
}
int cuCtxGetCurrent(void** context) {
  *context = current;
  return 0;
}
int cuCtxSetCurrent(void* context) {
  current = context;
  return 0;
}
int cuCtxSynchronize(void) {
  return 0;
}
int cuCtxGetDevice(int* device) {
  *device = 0;
  return 0;
}
int cuMemAlloc_v2(address* made, size_t bytes) {
  MAY_FAIL(2);
  for (int i = 0; i < kMostBlocks; ++i) {
    if (blocks[i].begin) continue;
    blocks[i].begin = (char*)aligned_alloc(256, (bytes + 255) / 256 * 256);
    memset(blocks[i].begin, 0x5a, bytes);
    blocks[i].bytes = bytes;
    *made = (address)(uintptr_t)blocks[i].begin;
    ++allocations;
    return 0;
  }
  return 2;
}
int cuMemFree_v2(address freed) {
  for (int i = 0; i < kMostBlocks; ++i) {
    if ((address)(uintptr_t)blocks[i].begin != freed) continue;
    free(blocks[i].begin);
    blocks[i].begin = NULL;
    --allocations;
    return 0;
  }
  return 1;
}
int cuMemHostAlloc(void** made, size_t bytes, unsigned flags) {
  (void)flags;
  *made = calloc(1, bytes);
  return 0;
}
int cuMemFreeHost(void* freed) {
  free(freed);
  return 0;
}

typedef struct {
  void* to;
  const void* from;
  size_t bytes;
} copy;
static void run_copy(void* data) {
  const copy* c = (const copy*)data;
  memmove(c->to, c->from, c->bytes);
}
static int enqueue_copy(void* to, const void* from, size_t bytes, void* of) {
  const copy c = {to, from, bytes};
  fake_enqueue(of, run_copy, &c, sizeof c);
  return 0;
}
int cuMemcpyHtoDAsync_v2(address to, const void* from, size_t bytes, void* of) {
  MAY_FAIL(700);
  ++copies_from_host;
  return enqueue_copy((void*)(uintptr_t)to, from, bytes, of);
}
int cuMemcpyDtoHAsync_v2(void* to, address from, size_t bytes, void* of) {
  return enqueue_copy(to, (const void*)(uintptr_t)from, bytes, of);
}
int cuMemcpyDtoDAsync_v2(address to, address from, size_t bytes, void* of) {
  return enqueue_copy((void*)(uintptr_t)to, (const void*)(uintptr_t)from, bytes, of);
}
int cuMemsetD8Async(address to, unsigned char value, size_t bytes, void* of) {
  (void)of;
  memset((void*)(uintptr_t)to, value, bytes);
  return 0;
}
int cuMemsetD32Async(address to, unsigned value, size_t count, void* of) {
  (void)of;
  for (size_t i = 0; i < count; ++i) ((unsigned*)(uintptr_t)to)[i] = value;
  return 0;
}
int cuPointerGetAttributes(unsigned count, int* attributes, void** values, address of) {
  (void)count;
  (void)attributes;
  const char* p = (const char*)(uintptr_t)of;
  *(unsigned*)values[0] = 0;
  *(int*)values[1] = -2;
  for (int i = 0; i < kMostBlocks; ++i) {
    if (!blocks[i].begin || p < blocks[i].begin || p >= blocks[i].begin + blocks[i].bytes) continue;
    *(unsigned*)values[0] = 2;
    *(int*)values[1] = 0;
  }
  return 0;
}
int cuStreamCreate(void** made, unsigned flags) {
  (void)flags;
  *made = calloc(1, sizeof(stream));
  return 0;
}
int cuStreamDestroy_v2(void* of) {
  free(of);
  return 0;
}
int cuStreamSynchronize(void* of) {
  MAY_FAIL(700);
  (void)of;
  return 0;
}
int cuStreamIsCapturing(void* of, int* state) {
  *state = of ? ((stream*)of)->capturing : 0;
  return 0;
}
int cuStreamBeginCapture_v2(void* of, int mode) {
  MAY_FAIL(900);
  (void)mode;
  stream* s = (stream*)of;
  s->capturing = 1;
  s->first = NULL;
  s->last = &s->first;
  return 0;
}
int cuStreamEndCapture(void* of, void** graph) {
  stream* s = (stream*)of;
  s->capturing = 0;
  *graph = s->first;
  return 0;
}
int cuGraphDestroy(void* graph) {
  (void)graph; /* the executable has it */
  return 0;
}
int cuGraphInstantiateWithFlags(void** made, void* graph, unsigned long long flags) {
  MAY_FAIL(2);
  (void)flags;
  *made = graph;
  return 0;
}
int cuGraphLaunch(void* executable, void* of) {
  MAY_FAIL(700);
  (void)of;
  ++graph_launches;
  for (work* w = (work*)executable; w; w = w->next) {
    work now = *w;
    now.run(now.data);
  }
  return 0;
}
int cuGraphExecDestroy(void* executable) {
  for (work* w = (work*)executable; w;) {
    work* next = w->next;
    free(w);
    w = next;
  }
  return 0;
}
int cuModuleLoadData(void** module, const void* image) {
  MAY_FAIL(209);
  (void)image;
  *module = &the_context;
  return 0;
}
int cuModuleUnload(void* module) {
  (void)module;
  return 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  MAY_FAIL(500);
  (void)module;
  *function = (void*)(uintptr_t)name; /* of the model, which outlives it */
  return 0;
}
typedef struct {
  const char* name;
  int64_t word;
} kernel_call;
static void run_kernel(void* data) {
  const kernel_call* k = (const kernel_call*)data;
  if (on_launch) on_launch(k->name, k->word);
}
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void* of, void** parameters, void** extra) {
  MAY_FAIL(701);
  (void)gy, (void)gz, (void)by, (void)bz, (void)shared, (void)extra;
  if (gx == 0 || bx == 0 || bx > 1024) return 1;
  ++launches;
  kernel_call k;
  memset(&k, 0, sizeof k);
  k.name = (const char*)function;
  memcpy(&k.word, parameters[0], sizeof k.word);
  fake_enqueue(of, run_kernel, &k, sizeof k);
  return 0;
}
int cuGetErrorName(int result, const char** name) {
  *name = result == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
  return 0;
}
int cuGetErrorString(int result, const char** text) {
  *text = result == 2 ? "out of memory" : result == 100 ? "no CUDA-capable device" : "a failure";
  return 0;
}
