// What L2 and HBM give all SMs: `nvcc -O3 -arch=sm_90a memory.cu -o memory && ./memory`, under a minute.
// Prints one line of JSON for each figure: {"what", parameters .., "cycles" or "gbs"}.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <cuda_runtime.h>
#include <vector>

#define CHECK(x)                                                                                             \
  do {                                                                                                       \
    cudaError_t e = (x);                                                                                     \
    if (e != cudaSuccess) {                                                                                  \
      printf("{\"what\": \"error\", \"said\": \"%s\", \"line\": %d}\n", cudaGetErrorString(e), __LINE__);    \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

typedef unsigned long long u64;
constexpr int SMS = 132;
static u64 *out;
static char *src, *dst;

__device__ uint32_t to_shared(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ u64 now() {
  u64 t;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
  return t;
}
static double milliseconds(cudaEvent_t a, cudaEvent_t b) {
  float ms;
  CHECK(cudaEventElapsedTime(&ms, a, b));
  return ms;
}

// ---- streams: every thread has DEEP loads of T under way, waits for all, goes on ----

template <typename T> __device__ uint32_t word(T x);
template <> __device__ uint32_t word(uint4 x) { return x.x ^ x.y ^ x.z ^ x.w; }
template <> __device__ uint32_t word(uint2 x) { return x.x ^ x.y; }
template <> __device__ uint32_t word(uint32_t x) { return x; }
template <> __device__ uint32_t word(unsigned short x) { return x; }

// Turn by turn the whole grid reads on: `turns` times DEEP * grid * block * sizeof(T) bytes.
template <typename T, int DEEP, bool WRITE>
__global__ void stream(const T *from, T *to, uint32_t *sums, int turns) {
  size_t all = (size_t)gridDim.x * blockDim.x, at = (size_t)blockIdx.x * blockDim.x * DEEP + threadIdx.x;
  uint32_t sum = 0;
  for (int i = 0; i < turns; i++, at += all * DEEP) {
    T got[DEEP];
#pragma unroll
    for (int d = 0; d < DEEP; d++)
      got[d] = from[at + (size_t)d * blockDim.x];
#pragma unroll
    for (int d = 0; d < DEEP; d++) {
      sum += word(got[d]);
      if (WRITE)
        to[at + (size_t)d * blockDim.x] = got[d];
    }
    if (sum == 0x12345671)  // no load of the next turn before this
      at += 1;
  }
  if (sum == 0x12345678)
    sums[0] = sum;
}

template <typename T, int DEEP, bool WRITE>
void run_stream(size_t bytes, int ctas, int threads, int launches, int sets) {
  int grid = SMS * ctas;
  size_t turn = (size_t)grid * threads * DEEP * sizeof(T);
  int turns = std::max<int>(1, bytes / turn);
  size_t each = turns * turn;
  cudaEvent_t a, b;
  CHECK(cudaEventCreate(&a));
  CHECK(cudaEventCreate(&b));
  double best = 1e18;
  for (int again = 0; again < 3; again++) {
    CHECK(cudaEventRecord(a));
    for (int i = 0; i < launches; i++)
      stream<T, DEEP, WRITE><<<grid, threads>>>((const T *)(src + i % sets * each), (T *)(dst + i % sets * each),
                                                (uint32_t *)out, turns);
    CHECK(cudaEventRecord(b));
    CHECK(cudaDeviceSynchronize());
    best = std::min(best, milliseconds(a, b) / launches);
  }
  printf("{\"what\": \"stream\", \"bytes\": %zu, \"lane\": %zu, \"deep\": %d, \"ctas\": %d, \"threads\": %d, \"writes\": %d, "
         "\"sets\": %d, \"flight\": %zu, \"us\": %.2f, \"gbs\": %.0f}\n",
         each, sizeof(T), DEEP, ctas, threads, WRITE, sets, turn / SMS, best * 1e3, each / best / 1e6);
}

// ---- TMA loads of boxes of 128 B x ROWS, DEEP under way, of matrices whose rows are `pitch` bytes ----

constexpr int ROWS = 128, DEEP = 4;

__global__ void boxes(const __grid_constant__ CUtensorMap map, u64 *out, int groups, int tiles, int wide) {
  extern __shared__ __align__(1024) char smem[];
  __shared__ uint64_t full[DEEP];
  if (threadIdx.x)
    return;
  uint32_t base = (to_shared(smem) + 1023) & ~1023u;
  for (int s = 0; s < DEEP; s++)
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(to_shared(&full[s])));
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  auto load = [&](int t) {
    uint32_t bar = to_shared(&full[t % DEEP]);
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"(ROWS * 128) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(base + t % DEEP * ROWS * 128), "l"(&map), "r"(t % wide * 64), "r"((int)blockIdx.x % groups * ROWS), "r"(bar)
                 : "memory");
  };
  auto wait = [&](int t) {
    uint32_t done = 0;
    while (!done)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                   : "=r"(done) : "r"(to_shared(&full[t % DEEP])), "r"(t / DEEP & 1) : "memory");
  };
  u64 begin = 0;
  for (int t = 0; t < tiles + DEEP; t++) {
    if (t == wide)  // after one walk all is in L2, if it fits
      begin = now();
    if (t >= DEEP)
      wait(t - DEEP);
    if (t < tiles)
      load(t);
  }
  out[blockIdx.x] = now() - begin;
}

typedef CUresult (*Encode)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                           const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                           CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

void run_boxes(Encode encode, int pitch, int blocks, int groups, int tiles, int wide) {
  CUtensorMap map;
  cuuint64_t sizes[2] = {(cuuint64_t)pitch / 2, (cuuint64_t)groups * ROWS}, strides[1] = {(cuuint64_t)pitch};
  cuuint32_t box[2] = {64, ROWS}, steps[2] = {1, 1};
  if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, src, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
             CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)) {
    printf("{\"what\": \"error\", \"said\": \"tensor map\"}\n");
    return;
  }
  int bytes = DEEP * ROWS * 128 + 1024;
  CHECK(cudaFuncSetAttribute(boxes, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  std::vector<u64> took(blocks);
  double best = 1e18;
  for (int again = 0; again < 3; again++) {
    boxes<<<blocks, 32, bytes>>>(map, out, groups, tiles, wide);
    CHECK(cudaMemcpy(took.data(), out, blocks * 8, cudaMemcpyDeviceToHost));
    std::nth_element(took.begin(), took.begin() + blocks / 2, took.end());
    best = std::min(best, (double)took[blocks / 2] / (tiles - wide));
  }
  printf("{\"what\": \"boxes\", \"pitch\": %d, \"blocks\": %d, \"groups\": %d, \"wide\": %d, \"cycles\": %.1f}\n", pitch, blocks,
         groups, wide, best);
}

// ---- cp.async of 16 bytes: 8 warps copy 384 rows of 128 B a turn, two turns under way ----

__global__ void copies(const char *from, u64 *out, int pitch, int shift, int groups, int turns, int wide) {
  extern __shared__ __align__(1024) char smem[];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const char *mine = from + shift + (size_t)(blockIdx.x % groups * 384 + warp * 48 + lane / 8) * pitch + lane % 8 * 16;
  uint32_t base = to_shared(smem) + warp * 48 * 128 + lane * 16;
  u64 begin = 0;
  for (int t = 0; t < turns; t++) {
    if (t == wide) {
      __syncthreads();
      begin = now();
    }
#pragma unroll
    for (int c = 0; c < 12; c++)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(base + t % 3 * 49152 + c * 512),
                   "l"(mine + (size_t)c * 4 * pitch + t % wide * 128) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  if (!threadIdx.x)
    out[blockIdx.x] = now() - begin;
}

void run_copies(int pitch, int shift, int blocks, int groups, int turns, int wide) {
  int bytes = 3 * 49152;
  CHECK(cudaFuncSetAttribute(copies, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  std::vector<u64> took(blocks);
  double best = 1e18;
  for (int again = 0; again < 3; again++) {
    copies<<<blocks, 256, bytes>>>(src, out, pitch, shift, groups, turns, wide);
    CHECK(cudaMemcpy(took.data(), out, blocks * 8, cudaMemcpyDeviceToHost));
    std::nth_element(took.begin(), took.begin() + blocks / 2, took.end());
    best = std::min(best, (double)took[blocks / 2] / (turns - wide));
  }
  printf("{\"what\": \"copies\", \"pitch\": %d, \"shift\": %d, \"blocks\": %d, \"groups\": %d, \"cycles\": %.1f}\n", pitch, shift,
         blocks, groups, best);
}

int main() {
  constexpr size_t MB = 1 << 20;
  CHECK(cudaMalloc(&src, 2048 * MB));
  CHECK(cudaMalloc(&dst, 2048 * MB));
  CHECK(cudaMemset(src, 1, 2048 * MB));
  CHECK(cudaMemset(dst, 0, 2048 * MB));
  CHECK(cudaMalloc(&out, MB));
  for (size_t mb : {32, 48, 64, 96, 128, 192, 256, 384, 512})  // in turn, once and in 4 sets
    for (int sets : {1, 4}) {
      run_stream<uint4, 4, false>(mb * MB, 4, 512, 20, sets);
      if (mb <= 256)
        run_stream<uint4, 2, true>(mb * MB, 4, 512, 20, sets);
    }
  for (int ctas : {1, 2, 4, 8, 16}) {  // little under way
    run_stream<uint4, 1, false>(1024 * MB, ctas, 128, 2, 1);
    run_stream<uint4, 2, false>(1024 * MB, ctas, 128, 2, 1);
    run_stream<uint4, 4, false>(1024 * MB, ctas, 128, 2, 1);
    run_stream<uint32_t, 4, false>(1024 * MB, ctas, 128, 2, 1);
    run_stream<unsigned short, 4, false>(256 * MB, ctas, 128, 2, 1);
    run_stream<uint4, 1, true>(1024 * MB, ctas, 128, 2, 1);
    run_stream<uint4, 4, true>(1024 * MB, ctas, 128, 2, 1);
  }
  Encode encode = nullptr;
  cudaDriverEntryPointQueryResult said;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000, cudaEnableDefault, &said));
  for (int pitch : {3328, 3392, 3360, 3344, 4096, 8192, 8208})
    for (int groups : {1, 11, 32}) {
      run_boxes(encode, pitch, 1, 1, 26 * 8, 26);
      run_boxes(encode, pitch, SMS, groups, 26 * 8, 26);
      if (pitch <= 4096)
        run_copies(pitch, 0, SMS, groups / 3 + 1, 26 * 8, 26);
    }
  for (int pitch : {3328, 3344, 3360})
    for (int blocks : {1, 12, 44, SMS})
      for (int shift : {0, 16, 32})
        run_copies(pitch, shift, blocks, 11, 26 * 8, 26);
  for (int pitch : {3328, 3344})  // nothing in L2: 4 sets of 132 * 128 rows
    run_boxes(encode, pitch, SMS, SMS, 26 * 2, 26);
}
