// How an SM's memory pipes share: `nvcc -O3 -arch=sm_90a ports.cu -o ports && ./ports`, under a minute.
// Prints one line of JSON for each figure: {"what", parameters .., "cycles"}. Cycles of an SM.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(x)                                                                                             \
  do {                                                                                                       \
    cudaError_t e = (x);                                                                                     \
    if (e != cudaSuccess) {                                                                                  \
      printf("{\"what\": \"error\", \"said\": \"%s\", \"line\": %d}\n", cudaGetErrorString(e), __LINE__);    \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

constexpr int WARPS = 8, STRIDE = 2944;  // bytes of a row of the matrix that is copied
typedef unsigned long long u64;

__device__ uint32_t to_shared(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ u64 now() {
  u64 t;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
  return t;
}
__device__ void matrices(uint32_t *r, uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}
__device__ void copy16(uint32_t to, const char *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ void pending() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

// ---- ldmatrix and cp.async, round after round, all warps of one CTA ----

// row: bytes that neighbouring lanes copy of a row; shift: bytes by which rows begin beside a line
template <int L, int C>
__global__ void mixed(const char *src, u64 *out, int rounds, int row, int shift) {
  extern __shared__ __align__(1024) char smem[];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  uint32_t base = to_shared(smem) + warp * 12288, sum = 0;
  int lanes = row / 16, rows = 32 / lanes;
  const char *from = src + shift + (lane / lanes) * STRIDE + lane % lanes * 16 + warp * rows * STRIDE * 12;
  __syncthreads();
  u64 begin = now();
  for (int i = 0; i < rounds; i++) {
    const char *tile = from + (i % 16) * 128;
#pragma unroll
    for (int q = 0; q < 4; q++) {
      uint32_t r[L ? L : 1][4];
#pragma unroll
      for (int l = 0; l < L / 4; l++)
        matrices(r[l], base + (l % 8) * 512 + lane * 16);
#pragma unroll
      for (int c = 0; c < C / 4; c++)
        copy16(base + 4096 + (q * C / 4 + c) % 12 * 512 + lane * 16, tile + (q * C / 4 + c) * rows * STRIDE);
#pragma unroll
      for (int l = 0; l < L / 4; l++)
        sum ^= r[l][0] ^ r[l][1] ^ r[l][2] ^ r[l][3];
    }
    if (C) {
      commit();
      pending<2>();
    }
  }
  pending<0>();
  if (sum == 77)
    out[1000000] = sum;
  u64 end = now();
  if (lane == 0) {
    out[(blockIdx.x * WARPS + warp) * 2] = begin;
    out[(blockIdx.x * WARPS + warp) * 2 + 1] = end;
  }
}

u64 *out;
std::vector<u64> host(1 << 16);

double span(int blocks, int warps) {  // mean over blocks of last end - first begin
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(host.data(), out, blocks * warps * 16, cudaMemcpyDeviceToHost));
  double sum = 0;
  for (int b = 0; b < blocks; b++) {
    u64 first = ~0ull, last = 0;
    for (int w = 0; w < warps; w++) {
      first = std::min(first, host[(b * warps + w) * 2]);
      last = std::max(last, host[(b * warps + w) * 2 + 1]);
    }
    sum += last - first;
  }
  return sum / blocks;
}

template <int L, int C> void run_mixed(const char *src, int blocks, int row, int shift) {
  CHECK(cudaFuncSetAttribute(mixed<L, C>, cudaFuncAttributeMaxDynamicSharedMemorySize, 12288 * WARPS));
  double best = 1e18;
  for (int again = 0; again < 3; again++) {
    mixed<L, C><<<blocks, 32 * WARPS, 12288 * WARPS>>>(src, out, 64, row, shift);
    best = std::min(best, span(blocks, WARPS));
  }
  printf("{\"what\": \"mixed\", \"ldmatrix\": %d, \"copies\": %d, \"row\": %d, \"shift\": %d, \"blocks\": %d, "
         "\"cycles\": %.1f}\n", L, C, row, shift, blocks, best / 64);
}

// ---- a burst of copies by all warps, then one ldmatrix ----

template <int C> __global__ void burst(const char *src, u64 *out, int rounds, int row, int shift) {
  extern __shared__ __align__(1024) char smem[];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  uint32_t base = to_shared(smem) + warp * 12288;
  int lanes = row / 16, rows = 32 / lanes;
  const char *from = src + shift + (lane / lanes) * STRIDE + lane % lanes * 16 + warp * rows * STRIDE * 12;
  u64 issued = 0, loaded = 0, landed = 0;
  for (int i = 0; i < rounds; i++) {
    const char *tile = from + (i % 16) * 128;
    uint32_t r[4];
    __syncthreads();
    u64 t0 = now();
#pragma unroll
    for (int c = 0; c < C; c++)
      copy16(base + 4096 + c % 12 * 512 + lane * 16, tile + c * rows * STRIDE);
    commit();
    u64 t1 = now();
    matrices(r, base + lane * 16);
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(base + 2048 + lane * 4), "r"(r[0] ^ r[1] ^ r[2] ^ r[3]) : "memory");
    u64 t2 = now();
    pending<0>();
    u64 t3 = now();
    if (i >= 4)
      issued += t1 - t0, loaded += t2 - t0, landed += t3 - t0;
  }
  if (lane == 0) {
    u64 *to = out + (blockIdx.x * WARPS + warp) * 4;
    to[0] = issued, to[1] = loaded, to[2] = landed;
  }
}

template <int C> void run_burst(const char *src, int blocks, int row, int shift) {
  CHECK(cudaFuncSetAttribute(burst<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, 12288 * WARPS));
  burst<C><<<blocks, 32 * WARPS, 12288 * WARPS>>>(src, out, 36, row, shift);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(host.data(), out, blocks * WARPS * 32, cudaMemcpyDeviceToHost));
  double mean[3] = {}, most[3] = {};
  for (int b = 0; b < blocks; b++)
    for (int w = 0; w < WARPS; w++)
      for (int k = 0; k < 3; k++) {
        double one = host[(b * WARPS + w) * 4 + k] / 32.0;
        mean[k] += one / blocks / WARPS;
        most[k] = std::max(most[k], one);
      }
  printf("{\"what\": \"burst\", \"copies\": %d, \"row\": %d, \"shift\": %d, \"blocks\": %d, \"issued\": %.1f, "
         "\"loaded\": %.1f, \"landed\": %.1f, \"most_issued\": %.1f, \"most_loaded\": %.1f, \"most_landed\": "
         "%.1f}\n", C, row, shift, blocks, mean[0], mean[1], mean[2], most[0], most[1], most[2]);
}

// ---- the loop of a product: 128 x 256 x 64 in 8 warps of 64 x 64, three stages; parts of it left out ----

enum { COPY = 1, SECOND = 2, EARLY = 4, FIRST = 8, SAME = 16, LOADS = 32, PRODUCTS = 64, HALF = 128 };

template <int DO>
__global__ void __launch_bounds__(256, 1) product(const char *A, const char *B, u64 *out, float *sink, int tiles) {
  extern __shared__ __align__(1024) char smem[];
  int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
  int m = blockIdx.x % 15 * 128, n = blockIdx.x / 15 * 256;
  uint32_t as = to_shared(smem), bs = as + 3 * 16384;
  float acc[4][8][4] = {};
  auto fetch = [&](int stage, int k) {
    int at = DO & SAME ? 0 : k % 23 * 128;
#pragma unroll
    for (int i = 0; i < (DO & HALF ? 6 : 12); i++) {
      int row = tid / 8 + i % 12 * 32, chunk = tid % 8;
      bool of_a = i < 4;
      int r = of_a ? row : row - 128;
      uint32_t to = (of_a ? as + stage * 16384 : bs + stage * 32768) + r * 128 + ((chunk ^ (r % 8)) * 16);
      copy16(to, (of_a ? A + (u64)(m + r) * STRIDE : B + (u64)(n + r) * STRIDE) + at + chunk * 16);
    }
  };
  fetch(0, 0);
  commit();
  fetch(1, 1);
  commit();
  fetch(2, 2);
  commit();
  u64 begin = 0;
  int wm = warp % 2 * 64, wn = warp / 2 * 64;
  for (int k = 0, stage = 0; k < tiles; k++, stage = stage == 2 ? 0 : stage + 1) {
    if (k == 4)
      begin = now();
    pending<2>();
    if (DO & FIRST)
      __syncthreads();
#pragma unroll
    for (int step = 0; step < 4; step++) {
      uint32_t a[4][4], b[4][4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        int ra = wm + i * 16 + lane % 16, rb = wn + i * 16 + lane / 16 * 8 + lane % 8;
        if (DO & LOADS) {
          matrices(a[i], as + stage * 16384 + ra * 128 + (((step * 2 + lane / 16) ^ (ra % 8)) * 16));
          matrices(b[i], bs + stage * 32768 + rb * 128 + (((step * 2 + lane / 8 % 2) ^ (rb % 8)) * 16));
        } else
          for (int r = 0; r < 4; r++)
            a[i][r] = lane + r + k, b[i][r] = lane * r;
      }
      if (DO & EARLY && DO & COPY && step == 0) {
        fetch(stage == 0 ? 2 : stage - 1, k + 2);
        commit();
      }
      if (DO & PRODUCTS) {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
          for (int j = 0; j < 8; j++) {
            float *d = acc[i][j];
            asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                "{%0,%1,%2,%3};"
                : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j / 2][j % 2 * 2]),
                  "r"(b[j / 2][j % 2 * 2 + 1]));
          }
      } else
        for (int i = 0; i < 4; i++)
          for (int r = 0; r < 4; r++)
            acc[i][r][0] += __uint_as_float(a[i][r] ^ b[i][r]);
    }
    if (DO & SECOND)
      __syncthreads();
    if (DO & COPY && !(DO & EARLY))
      fetch(stage, k + 3);
    if (!(DO & EARLY))
      commit();
  }
  u64 end = now();
  float sum = 0;
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 8; j++)
      for (int r = 0; r < 4; r++)
        sum += acc[i][j][r];
  if (sum == 12345.f)
    *sink = sum;
  if (lane == 0) {
    out[(blockIdx.x * WARPS + warp) * 2] = begin;
    out[(blockIdx.x * WARPS + warp) * 2 + 1] = end;
  }
  pending<0>();
}

template <int DO> void run_product(const char *name, const char *src, int blocks) {
  CHECK(cudaFuncSetAttribute(product<DO>, cudaFuncAttributeMaxDynamicSharedMemorySize, 147456));
  double best = 1e18;
  for (int again = 0; again < 4; again++) {
    product<DO><<<blocks, 256, 147456>>>(src, src + 1920 * STRIDE, out, (float *)(out + 60000), 68);
    best = std::min(best, span(blocks, WARPS));
  }
  printf("{\"what\": \"product\", \"form\": \"%s\", \"blocks\": %d, \"cycles\": %.1f}\n", name, blocks, best / 64);
}

// ---- loads of global memory: cycles of an SM for one instruction of a warp, many in flight ----

// `share` lanes read the same; of the others `group` stand side by side, the next ones `apart` bytes on
template <typename T> __device__ uint32_t folded(T v);
template <> __device__ uint32_t folded(unsigned short v) { return v; }
template <> __device__ uint32_t folded(uint32_t v) { return v; }
template <> __device__ uint32_t folded(uint4 v) { return v.x ^ v.y ^ v.z ^ v.w; }

template <typename T, int NEXT>
__global__ void loads(const char *src, u64 *out, int share, int group, int apart, int bytes, int between) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32 / share, warps = blockDim.x / 32;
  const char *from = src + (u64)blockIdx.x * between + lane % group * (int)sizeof(T) + lane / group * apart;
  uint32_t sum = 0;
  __syncthreads();
  u64 begin = 0;
  for (int i = 0; i < 36; i++) {
    if (i == 4)
      begin = now();
    const char *at = from + ((i * warps + warp) * 8 * NEXT & (bytes - 1));
    T v[8];
#pragma unroll
    for (int j = 0; j < 8; j++)
      v[j] = *(const T *)(at + j * NEXT);
#pragma unroll
    for (int j = 0; j < 8; j++)
      sum ^= folded(v[j]);
  }
  if (sum == 77)
    out[60000] = sum;
  u64 end = now();
  if (threadIdx.x % 32 == 0) {
    out[(blockIdx.x * warps + warp) * 2] = begin;
    out[(blockIdx.x * warps + warp) * 2 + 1] = end;
  }
}

template <typename T, int NEXT>
void run_loads(const char *name, const char *src, int blocks, int share, int group, int apart, int bytes,
               int between, int warps) {
  double best = 1e18;
  for (int again = 0; again < 4; again++) {
    loads<T, NEXT><<<blocks, 32 * warps>>>(src, out, share, group, apart, bytes, between);
    best = std::min(best, span(blocks, warps));
  }
  printf("{\"what\": \"loads\", \"form\": \"%s\", \"bytes\": %d, \"next\": %d, \"turn\": %d, \"between\": "
         "%d, \"blocks\": %d, \"warps\": %d, \"cycles\": %.2f}\n", name, (int)sizeof(T), NEXT, bytes, between,
         blocks, warps, best / (32 * 8 * warps));
}

// ---- additions to global memory ----

template <int KIND> __global__ void adds(float *to, u64 *out, int groups, int lines) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float *at = to + ((u64)(blockIdx.x % groups) * WARPS + warp) * lines * 128;  // 512 bytes each time
  __syncthreads();
  u64 begin = now();
  for (int i = 0; i < 64; i++) {
    float *p = at + i % lines * 128;
    if (KIND == 0)
      asm volatile("red.global.add.f32 [%0], %1;" ::"l"(p + lane), "f"(1.f) : "memory");
    if (KIND == 1)
      asm volatile("red.global.add.v4.f32 [%0], {%1, %1, %1, %1};" ::"l"(p + lane * 4), "f"(1.f) : "memory");
    if (KIND == 2) {
      float4 r;
      asm volatile("atom.global.gpu.acq_rel.add.v4.f32 {%0, %1, %2, %3}, [%4], {%5, %5, %5, %5};"
                   : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w)
                   : "l"(p + lane * 4), "f"(1.f)
                   : "memory");
    }
    if (KIND == 3)
      asm volatile("fence.acq_rel.gpu;" ::: "memory");
    if (KIND == 4) {
      asm volatile("st.global.f32 [%0], %1;" ::"l"(p + lane), "f"(1.f) : "memory");
      asm volatile("fence.acq_rel.gpu;" ::: "memory");
    }
  }
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
  u64 end = now();
  if (lane == 0) {
    out[(blockIdx.x * WARPS + warp) * 2] = begin;
    out[(blockIdx.x * WARPS + warp) * 2 + 1] = end;
  }
}

template <int KIND> void run_adds(const char *name, float *to, int blocks, int groups, int lines) {
  double best = 1e18;
  for (int again = 0; again < 3; again++) {
    adds<KIND><<<blocks, 32 * WARPS>>>(to, out, groups, lines);
    best = std::min(best, span(blocks, WARPS));
  }
  printf("{\"what\": \"adds\", \"form\": \"%s\", \"blocks\": %d, \"groups\": %d, \"places\": %d, \"cycles\": %.1f}\n",
         name, blocks, groups, lines, best / 64);
}

int main() {
  char *src;
  CHECK(cudaMalloc(&src, 256 << 20));
  CHECK(cudaMemset(src, 0, 256 << 20));
  CHECK(cudaMalloc(&out, 16 << 20));
  for (int blocks : {1, 132}) {
    run_product<COPY | SECOND | FIRST | LOADS | PRODUCTS>("as rung 4", src, blocks);
    run_product<SECOND | FIRST | LOADS | PRODUCTS>("no copies", src, blocks);
    run_product<COPY | FIRST | LOADS | PRODUCTS>("no second barrier", src, blocks);
    run_product<COPY | EARLY | SECOND | FIRST | LOADS | PRODUCTS>("copies in the first step", src, blocks);
    run_product<COPY | EARLY | FIRST | LOADS | PRODUCTS>("copies in the first step, one barrier", src, blocks);
    run_product<LOADS | PRODUCTS>("no copies, no barriers", src, blocks);
    run_product<COPY | SAME | SECOND | FIRST | LOADS | PRODUCTS>("copies of the same lines", src, blocks);
    run_product<COPY | HALF | SECOND | FIRST | LOADS | PRODUCTS>("half of the copies", src, blocks);
    run_product<COPY | SECOND | FIRST | PRODUCTS>("no ldmatrix", src, blocks);
    run_product<COPY | SECOND | FIRST | LOADS>("no products", src, blocks);
    run_product<COPY | SECOND | FIRST>("no ldmatrix, no products", src, blocks);
    run_product<PRODUCTS>("products alone", src, blocks);
  }
  for (int blocks : {1, 132})
    for (int row : {128, 512, 64, 32}) {
      run_mixed<0, 12>(src, blocks, row, 0);
      run_mixed<16, 12>(src, blocks, row, 0);
      run_mixed<32, 12>(src, blocks, row, 0);
      run_mixed<0, 12>(src, blocks, row, 16);
      run_mixed<32, 12>(src, blocks, row, 16);
    }
  run_mixed<16, 0>(src, 1, 128, 0);
  run_mixed<32, 0>(src, 1, 128, 0);
  run_mixed<32, 4>(src, 1, 128, 0);
  run_mixed<32, 8>(src, 1, 128, 0);
  for (int blocks : {1, 132})
    for (int row : {128, 32})
      for (int shift : {0, 16}) {
        run_burst<0>(src, blocks, row, shift);
        run_burst<1>(src, blocks, row, shift);
        run_burst<2>(src, blocks, row, shift);
        run_burst<4>(src, blocks, row, shift);
        run_burst<8>(src, blocks, row, shift);
        run_burst<12>(src, blocks, row, shift);
      }
  constexpr int KB = 1024;
  typedef uint32_t word;
  for (int blocks : {1, 132})
    for (int warps : {8, 32}) {  // hits of L1
      run_loads<word, 128>("one word", src, blocks, 32, 1, 0, 8 * KB, 0, warps);
      run_loads<word, 128>("two words", src, blocks, 16, 1, 8 * KB, 8 * KB, 0, warps);
      run_loads<word, 128>("half a line, twice", src, blocks, 1, 16, 0, 8 * KB, 0, warps);
      run_loads<word, 128>("a line", src, blocks, 1, 32, 0, 8 * KB, 0, warps);
      run_loads<word, 128>("two half lines", src, blocks, 1, 16, 4 * KB, 4 * KB, 0, warps);
      run_loads<word, 16>("8 rows of 16 B", src, blocks, 1, 4, KB, KB, 0, warps);
      run_loads<word, 4>("32 lines", src, blocks, 1, 1, 128, 128, 0, warps);
      run_loads<uint4, 512>("four lines", src, blocks, 1, 32, 0, 8 * KB, 0, warps);
      run_loads<unsigned short, 64>("half a line", src, blocks, 1, 32, 0, 8 * KB, 0, warps);
    }
  for (int blocks : {1, 132})
    for (int warps : {8, 32})
      for (int between : {0, 128 * KB}) {  // of L2: each place once
        run_loads<word, 128>("L2, a line", src, blocks, 1, 32, 0, 2048 * KB, between, warps);
        run_loads<word, 64>("L2, two half lines", src, blocks, 1, 16, 1024 * KB, 1024 * KB, between, warps);
        run_loads<uint4, 512>("L2, four lines", src, blocks, 1, 32, 0, 8192 * KB, between, warps);
        run_loads<unsigned short, 64>("L2, half a line", src, blocks, 1, 32, 0, 1024 * KB, between, warps);
        run_loads<unsigned short, 128>("L2, half lines apart", src, blocks, 1, 32, 0, 2048 * KB, between, warps);
      }
  float *to = (float *)src;
  for (int blocks : {1, 132}) {
    for (int groups : {132, 22, 1}) {
      run_adds<0>("red, a line", to, blocks, groups, 16);
      run_adds<1>("red.v4, four lines", to, blocks, groups, 16);
      run_adds<2>("atom.acq_rel.v4, four lines", to, blocks, groups, 16);
    }
    run_adds<0>("red, the same line", to, blocks, 132, 1);
    run_adds<3>("fence.acq_rel.gpu", to, blocks, 132, 16);
    run_adds<4>("st and fence.acq_rel.gpu", to, blocks, 132, 16);
  }
  return 0;
}
