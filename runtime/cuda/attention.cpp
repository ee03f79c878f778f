// Attention in one kernel, for float16, bfloat16 and float32: scores are never in memory.
//
// A block of four warps computes some rows of the result of one head. It goes over the keys in tiles,
// which are on their way to shared memory while the tile before is computed with. A warp has 16 rows:
// products of its queries with its part of the tile's keys, the exponentials of what is above the
// largest so far, and their products with the values. Where a head has few rows, the warps share them
// and split the keys; what they found is joined at the end.
//
// Scores, exponentials and sums are float32; exponentials are rounded to the elements' dtype before
// they meet the values. Factors of float32 are cut in two, so that nothing of them is lost.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/loop_kernel.h"
#include "runtime/cuda/text_launch.h"

namespace wick::cuda {

namespace {

// In front of it: E, the elements of a row; DP, the same rounded up to what a product takes at once;
// TILE, the keys of a tile; S, how many warps share rows; MASK, 1 of booleans, 2 of numbers; CAUSAL.
// Then kHalves or kFloats, which have the products. Sums lie in the warps as those leave them: a thread
// has columns 2t and 2t + 1 of the rows g and g + 8 in each 8 columns.
constexpr const char* kBegin = R"(
#define R (4 / S)
#define ROWS (16 * R)
#define MINE (TILE / S)
#define NEGATIVE __int_as_float(0xff800000)
#define LOG2E 1.4426950408889634f
)";

// T: the instructions' name of the dtype.
constexpr const char* kHalves = R"(
typedef unsigned short Element;
#define VECTOR 8
#define PITCH (DP + 8)
__device__ __forceinline__ unsigned placeOf(const Element* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void matrices(unsigned* r, const Element* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(placeOf(from)) : "memory");
}
__device__ __forceinline__ void turnedMatrices(unsigned* r, const Element* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(placeOf(from)) : "memory");
}
__device__ __forceinline__ void multiply(float* c, const unsigned* a, unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." T "." T ".f32 {%0, %1, %2, %3}, "
               "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ unsigned rounded(float first, float second) {
  unsigned r;
  asm("cvt.rn." T "x2.f32 %0, %1, %2;" : "=r"(r) : "f"(second), "f"(first));
  return r;
}
__device__ __forceinline__ float number(Element bits) {
  float r;
  asm("cvt.f32." T " %0, %1;" : "=f"(r) : "h"(bits));
  return r;
}
__device__ __forceinline__ void store(Element* to, float first, float second) {
  *(unsigned*)to = rounded(first, second);
}
// Rows of queries, as factors.
struct Queries {
  unsigned part[DP / 16][4];
  __device__ __forceinline__ void load(const Element* q, long long step, int row, int rows, int t) {
    #pragma unroll
    for (int kk = 0; kk < DP / 16; ++kk) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int r = row + e % 2 * 8, column = kk * 16 + e / 2 * 8 + 2 * t;
        part[kk][e] = r < rows && column < E ? *(const unsigned*)(q + r * step + column) : 0;
      }
    }
  }
};
__device__ __forceinline__ void addScores(float (*s)[4], const Queries& own, const Element* keys, int lane) {
  #pragma unroll
  for (int kk = 0; kk < DP / 16; ++kk) {
    #pragma unroll
    for (int j = 0; j < MINE / 8; j += 2) {
      unsigned b[4];
      matrices(b, keys + ((j + lane / 16) * 8 + lane % 8) * PITCH + kk * 16 + lane / 8 % 2 * 8);
      multiply(s[j], own.part[kk], b[0], b[1]);
      multiply(s[j + 1], own.part[kk], b[2], b[3]);
    }
  }
}
__device__ __forceinline__ void addValues(float (*sums)[4], float (*s)[4], const Element* values, int lane) {
  #pragma unroll
  for (int i = 0; i < MINE / 16; ++i) {
    const float *x = s[2 * i], *y = s[2 * i + 1];
    const unsigned a[4] = {rounded(x[0], x[1]), rounded(x[2], x[3]), rounded(y[0], y[1]),
                           rounded(y[2], y[3])};
    #pragma unroll
    for (int n = 0; n < DP / 8; n += 2) {
      unsigned b[4];
      turnedMatrices(b, values + (i * 16 + lane % 16) * PITCH + n * 8 + lane / 16 * 8);
      multiply(sums[n], a, b[0], b[1]);
      multiply(sums[n + 1], a, b[2], b[3]);
    }
  }
}
)";

// Each factor is the sum of two of 11 bits, and only the product of both smaller ones is left out.
constexpr const char* kFloats = R"(
typedef float Element;
#define VECTOR 4
#define PITCH (DP + 4)
__device__ __forceinline__ unsigned placeOf(const Element* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void multiply(float* c, const unsigned* a, unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
               "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ unsigned shortened(float x) {
  unsigned r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
}
struct Parts {
  unsigned large[4], small[4];
  __device__ __forceinline__ void set(int i, float x) {
    large[i] = shortened(x);
    // Infinity and NaN have no rest.
    const float rest = x - __int_as_float(large[i]);
    small[i] = shortened(fabsf(x) < __int_as_float(0x7f800000) ? rest : 0.f);
  }
};
__device__ __forceinline__ void multiplyParts(float* c, const Parts& a, float b0, float b1) {
  Parts b;
  b.set(0, b0);
  b.set(1, b1);
  multiply(c, a.small, b.large[0], b.large[1]);
  multiply(c, a.large, b.small[0], b.small[1]);
  multiply(c, a.large, b.large[0], b.large[1]);
}
__device__ __forceinline__ float number(Element v) { return v; }
__device__ __forceinline__ void store(Element* to, float first, float second) {
  to[0] = first;
  to[1] = second;
}
struct Queries {
  float part[DP / 8][4];
  __device__ __forceinline__ void load(const Element* q, long long step, int row, int rows, int t) {
    #pragma unroll
    for (int kk = 0; kk < DP / 8; ++kk) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int r = row + e % 2 * 8, column = kk * 8 + e / 2 * 4 + t;
        part[kk][e] = r < rows && column < E ? q[r * step + column] : 0.f;
      }
    }
  }
};
__device__ __forceinline__ void addScores(float (*s)[4], const Queries& own, const Element* keys, int lane) {
  const int g = lane / 4, t = lane % 4;
  #pragma unroll
  for (int kk = 0; kk < DP / 8; ++kk) {
    Parts a;
    #pragma unroll
    for (int e = 0; e < 4; ++e) a.set(e, own.part[kk][e]);
    #pragma unroll
    for (int j = 0; j < MINE / 8; ++j) {
      const Element* from = keys + (j * 8 + g) * PITCH + kk * 8 + t;
      multiplyParts(s[j], a, from[0], from[4]);
    }
  }
}
// Of each 8 keys the even ones come first, as a thread has them.
__device__ __forceinline__ void addValues(float (*sums)[4], float (*s)[4], const Element* values, int lane) {
  const int g = lane / 4, t = lane % 4;
  #pragma unroll
  for (int j = 0; j < MINE / 8; ++j) {
    Parts a;
    a.set(0, s[j][0]);
    a.set(1, s[j][2]);
    a.set(2, s[j][1]);
    a.set(3, s[j][3]);
    #pragma unroll
    for (int n = 0; n < DP / 8; ++n) {
      const Element* from = values + (j * 8 + 2 * t) * PITCH + n * 8 + g;
      multiplyParts(sums[n], a, from[0], from[PITCH]);
    }
  }
}
)";

constexpr const char* kKernel = R"(
struct Words {
  const Element* q; const Element* k; const Element* v; Element* out;
  const void* mask;
  long long heads, group, queries, keys, blocks;
  long long q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row;
  long long out_batch, out_head, out_row, mask_batch, mask_head, mask_row, mask_key;
  double scale;
};
// 16 bytes, or zeros.
__device__ __forceinline__ void fetch(const Element* to, const Element* from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(placeOf(to)), "l"(from), "r"(exists ? 16 : 0) : "memory");
}
__device__ __forceinline__ float exponential(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
extern "C" __global__ void __launch_bounds__(128) attention(const __grid_constant__ Words p) {
  __shared__ __align__(16) Element memory[4 * TILE * PITCH];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int key_warp = warp % S, first_row = (int)(blockIdx.x % p.blocks) * ROWS;
  const long long item = blockIdx.x / p.blocks, batch = item / p.heads, head = item % p.heads;
  const Element* q = p.q + batch * p.q_batch + head * p.q_head;
  const Element* k = p.k + batch * p.k_batch + head / p.group * p.k_head;
  const Element* v = p.v + batch * p.v_batch + head / p.group * p.v_head;
  const int queries = (int)p.queries, row = first_row + warp / S * 16 + g;
  int keys = (int)p.keys;
#if CAUSAL
  if (keys > first_row + ROWS) keys = first_row + ROWS;
#endif
  const int tiles = (keys + TILE - 1) / TILE;
  const auto fetchTile = [&](int tile) {
    Element* to = memory + (tile & 1) * 2 * TILE * PITCH;
    #pragma unroll
    for (int i = threadIdx.x; i < 2 * TILE * (DP / VECTOR); i += 128) {
      const int key = i / (DP / VECTOR), e = i % (DP / VECTOR) * VECTOR, at = tile * TILE + key % TILE;
      const bool exists = at < keys && e < E;
      const Element* from = key < TILE ? k + at * p.k_row : v + at * p.v_row;
      fetch(to + key * PITCH + e, exists ? from + e : q, exists);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  fetchTile(0);
  Queries own;
  own.load(q, p.q_row, row, queries, t);
  const float scale = (float)p.scale * LOG2E;
#if MASK == 1
  const unsigned char* mask = (const unsigned char*)p.mask + batch * p.mask_batch + head * p.mask_head;
#elif MASK == 2
  const Element* mask = (const Element*)p.mask + batch * p.mask_batch + head * p.mask_head;
#endif
  float sums[DP / 8][4] = {}, largest[2] = {NEGATIVE, NEGATIVE}, total[2] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) {
      fetchTile(tile + 1);
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_group 0;" ::: "memory");
    }
    __syncthreads();
    const Element* tile_keys = memory + ((tile & 1) * 2 * TILE + key_warp * MINE) * PITCH;
    const Element* tile_values = tile_keys + TILE * PITCH;
    const int first_key = tile * TILE + key_warp * MINE;
    if (first_key < keys) {
      float s[MINE / 8][4] = {};
      addScores(s, own, tile_keys, lane);
      float now[2] = {largest[0], largest[1]};
      #pragma unroll
      for (int j = 0; j < MINE / 8; ++j) {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int key = first_key + j * 8 + 2 * t + e % 2, r = row + e / 2 * 8;
          float x = s[j][e] * scale;
          bool counts = key < keys;
#if CAUSAL
          counts &= key <= r;
#endif
#if MASK == 1
          if (counts && r < queries) counts = mask[r * p.mask_row + key * p.mask_key] != 0;
#elif MASK == 2
          if (counts && r < queries) x += number(mask[r * p.mask_row + key * p.mask_key]) * LOG2E;
#endif
          s[j][e] = counts ? x : NEGATIVE;
          now[e / 2] = fmaxf(now[e / 2], s[j][e]);
        }
      }
      #pragma unroll
      for (int h = 0; h < 2; ++h) {
        now[h] = fmaxf(now[h], __shfl_xor_sync(~0u, now[h], 1));
        now[h] = fmaxf(now[h], __shfl_xor_sync(~0u, now[h], 2));
        const float base = now[h] == NEGATIVE ? 0.f : now[h], share = exponential(largest[h] - base);
        largest[h] = now[h];
        total[h] *= share;
        #pragma unroll
        for (int n = 0; n < DP / 8; ++n) {
          sums[n][2 * h] *= share;
          sums[n][2 * h + 1] *= share;
        }
        #pragma unroll
        for (int j = 0; j < MINE / 8; ++j) {
          s[j][2 * h] = exponential(s[j][2 * h] - base);
          s[j][2 * h + 1] = exponential(s[j][2 * h + 1] - base);
          total[h] += s[j][2 * h] + s[j][2 * h + 1];
        }
      }
      addValues(sums, s, tile_values, lane);
    }
    __syncthreads();
  }
  #pragma unroll
  for (int h = 0; h < 2; ++h) {
    total[h] += __shfl_xor_sync(~0u, total[h], 1);
    total[h] += __shfl_xor_sync(~0u, total[h], 2);
  }
#if S > 1
  float* found = (float*)memory + warp / S * (S - 1) * (16 * DP + 128) + lane;
  if (key_warp > 0) {
    float* mine = found + (key_warp - 1) * (16 * DP + 128);
    #pragma unroll
    for (int n = 0; n < DP / 8; ++n) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) mine[(n * 4 + e) * 32] = sums[n][e];
    }
    #pragma unroll
    for (int h = 0; h < 2; ++h) {
      mine[16 * DP + h * 64] = largest[h];
      mine[16 * DP + h * 64 + 32] = total[h];
    }
  }
  __syncthreads();
  if (key_warp > 0) return;
  #pragma unroll
  for (int other = 0; other < S - 1; ++other) {
    const float* its = found + other * (16 * DP + 128);
    #pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float its_largest = its[16 * DP + h * 64], both = fmaxf(largest[h], its_largest);
      const float base = both == NEGATIVE ? 0.f : both;
      const float share = exponential(largest[h] - base), its_share = exponential(its_largest - base);
      largest[h] = both;
      total[h] = total[h] * share + its[16 * DP + h * 64 + 32] * its_share;
      #pragma unroll
      for (int n = 0; n < DP / 8; ++n) {
        #pragma unroll
        for (int e = 2 * h; e < 2 * h + 2; ++e) {
          sums[n][e] = sums[n][e] * share + its[(n * 4 + e) * 32] * its_share;
        }
      }
    }
  }
#endif
  Element* out = p.out + batch * p.out_batch + head * p.out_head;
  #pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int r = row + h * 8;
    if (r >= queries) continue;
    const float factor = 1.f / total[h];
    #pragma unroll
    for (int n = 0; n < DP / 8; ++n) {
      const int column = n * 8 + 2 * t;
      if (column < E) store(out + r * p.out_row + column, sums[n][2 * h] * factor, sums[n][2 * h + 1] * factor);
    }
  }
}
)";

constexpr int64_t kMostElements = 128;

// As [batch, heads, rows, elements].
Tensor asHeads(Tensor t) {
  while (t.dim() < 4) t = t.unsqueeze(0);
  return t;
}

// With rows that can be read 16 bytes at a time.
Tensor readable(const Tensor& t) {
  const auto vector = static_cast<int64_t>(16 / t.itemSize());
  bool fits = t.stride(3) == 1 && wordOf(t) % 16 == 0;
  for (int64_t d = 0; d < 3; ++d) fits &= t.size(d) == 1 || t.stride(d) % vector == 0;
  return fits ? t : t.clone(MemoryFormat::Contiguous);
}

struct Attention {
  Tensor q, k, v, mask;  // of four dimensions; the mask, if any, of the scores' sizes
  bool causal = false;
  double scale = 1;
};

// What the kernel computes, if it is that.
std::optional<Attention> described(CallFrame& frame) {
  const auto tensor = [&](size_t i) {
    return frame.args[i].isTensor() ? frame.args[i].toTensor() : Tensor();
  };
  const Tensor q = tensor(0), k = tensor(1), v = tensor(2), mask = tensor(3);
  if (!q.defined() || !k.defined() || !v.defined() || q.dim() < 2 || q.dim() > 4) {
    return std::nullopt;
  }
  const bool known = isReducedFloat(q.dtype()) || q.dtype() == DType::Float;
  if (!known || frame.args[4].numberToDouble() != 0) return std::nullopt;
  for (const Tensor* t : {&k, &v}) {
    if (t->dtype() != q.dtype() || t->dim() != q.dim()) return std::nullopt;
  }
  Attention found{asHeads(q), asHeads(k), asHeads(v), {}, frame.args[5].toBool()};
  const int64_t heads = found.q.size(1), key_heads = found.k.size(1), width = q.size(-1);
  const int64_t queries = q.size(-2), keys = k.size(-2);
  const bool grouped = frame.args[7].toBool() && key_heads > 0 && heads % key_heads == 0;
  constexpr int64_t kMostRows = int64_t{1} << 30;
  if (found.k.size(0) != found.q.size(0) || (heads != key_heads && !grouped) ||
      !std::ranges::equal(k.sizes(), v.sizes()) || k.size(-1) != width ||
      width * static_cast<int64_t>(q.itemSize()) % 16 != 0 || width > kMostElements ||
      q.numel() == 0 || k.numel() == 0 || queries > kMostRows || keys > kMostRows ||
      found.q.size(0) * heads * ((queries + 15) / 16) > INT32_MAX) {
    return std::nullopt;
  }
  found.scale = frame.args[6].isNone() ? 1 / std::sqrt(static_cast<double>(width))
                                       : frame.args[6].numberToDouble();
  if (!mask.defined()) return found;
  if (found.causal || mask.dim() > 4 ||
      (mask.dtype() != DType::Bool && mask.dtype() != q.dtype())) {
    return std::nullopt;
  }
  const Tensor all = asHeads(mask);
  const DimVector sizes{found.q.size(0), heads, queries, keys};
  for (size_t d = 0; d < 4; ++d) {
    const int64_t size = all.size(static_cast<int64_t>(d));
    if (size != sizes[d] && size != 1) return std::nullopt;
  }
  found.mask = all.expand(sizes);
  return found;
}

// How the warps of a block share its rows and keys.
struct Shares {
  Shares(const Attention& a, const CudaDevice& device)
      : tile((a.q.size(3) <= 64 ? 128 : 64) / static_cast<int64_t>(a.q.itemSize())) {
    const int64_t items = a.q.size(0) * a.q.size(1);
    const auto blocks = [&](int64_t rows) { return items * ((a.q.size(2) + rows - 1) / rows); };
    const int64_t enough = device.facts().multiprocessors;
    // What a product takes at once is the least of a tile's keys for a warp.
    const int64_t most = a.q.size(3) <= 64 ? 4 : 2;
    splits = blocks(64) >= enough ? 1 : blocks(32) >= enough ? 2 : most;
  }
  int64_t rows() const { return 64 / splits; }

  int64_t tile;  // keys
  int64_t splits;
};

std::string textFor(const Attention& a, const Shares& shares) {
  const int64_t width = a.q.size(3);
  const bool floats = a.q.dtype() == DType::Float;
  const int64_t step = floats ? 8 : 16;
  const int mask = !a.mask.defined() ? 0 : a.mask.dtype() == DType::Bool ? 1 : 2;
  return fmt::format(
             "#define T \"{}\"\n#define E {}\n#define DP {}\n#define TILE {}\n#define S {}\n"
             "#define MASK {}\n#define CAUSAL {}\n",
             a.q.dtype() == DType::Half ? "f16" : "bf16", width, (width + step - 1) / step * step,
             shares.tile, shares.splits, mask, a.causal ? 1 : 0) +
         kBegin + (floats ? kFloats : kHalves) + kKernel;
}

// As the queries lie: their heads within their rows, as layers of many heads read them, or around.
Tensor resultLike(const Tensor& q) {
  const bool inside = q.size(1) > 1 && q.stride(1) < q.stride(2);
  if (!inside) return Tensor::empty(q.sizes(), q.dtype(), q.device());
  return Tensor::empty(DimVector{q.size(0), q.size(2), q.size(1), q.size(3)}, q.dtype(), q.device())
      .transpose(1, 2);
}

Tensor compute(const Attention& a) {
  const Tensor q = readable(a.q), k = readable(a.k), v = readable(a.v), out = resultLike(a.q);
  CudaDevice& device = enter(q.device());
  const Shares shares(a, device);
  const int64_t blocks = (q.size(2) + shares.rows() - 1) / shares.rows();
  std::vector<int64_t> words = {wordOf(q),
                                wordOf(k),
                                wordOf(v),
                                wordOf(out),
                                wordOf(a.mask),
                                q.size(1),
                                q.size(1) / k.size(1),
                                q.size(2),
                                k.size(2),
                                blocks};
  for (const Tensor* t : {&q, &k, &v, &out}) {
    for (int64_t d = 0; d < 3; ++d) words.push_back(t->stride(d));
  }
  for (int64_t d = 0; d < 4; ++d) words.push_back(a.mask.defined() ? a.mask.stride(d) : 0);
  words.push_back(std::bit_cast<int64_t>(a.scale));
  constexpr unsigned kThreads = 128;
  launch(functionOf(device, textFor(a, shares), "attention"),
         static_cast<unsigned>(blocks * q.size(0) * q.size(1)), kThreads, words.data(),
         "attention");
  return out;
}

void scaledDotProductAttention(CallFrame& frame) {
  const std::optional<Attention> attention = described(frame);
  // Products and a softmax, with their checks.
  if (!attention) return frame.op->record().kernel(frame);
  Tensor out = compute(*attention);
  const int64_t dims = frame.args[0].toTensor().dim();
  for (int64_t d = dims; d < 4; ++d) out = out.squeeze(0);
  frame.results[0] = IValue(std::move(out));
}

const DeviceKernel kAttentionKernels[] = {
    {"aten::scaled_dot_product_attention", scaledDotProductAttention},
};
const RegisterDeviceKernels kAttentionRegistered(DeviceType::CUDA, kAttentionKernels);

}  // namespace

}  // namespace wick::cuda
