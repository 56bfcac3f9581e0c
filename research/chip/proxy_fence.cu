// Which accesses go wrong on a chip without fence.proxy.async (PTX ISA 9.7.13.4)? A generic write of shared memory, a
// CTA barrier, and an access by the async proxy: a wgmma or a bulk store that reads it, or a bulk load over it.
//
//     nvcc -gencode arch=compute_90a,code=sm_90a -o proxy_fence research/chip/proxy_fence.cu && ./proxy_fence
//
// 1,056 CTAs of one warpgroup fill 16 KB, 200 times each, with a number that changes, by stores of 1 to 16 bytes or by
// cp.async, which is waited for. Counted are rounds and threads that saw another number. An H200, 1 December 2026, of
// 27,033,600: without a fence a wgmma misses 2,048 to 332,864 stores and no cp.async; a bulk load comes before 32 of the
// stores of 16 bytes; all else is right, also with the fence after the barrier.

#include <cstdint>
#include <cstdio>
#include <cuda_fp16.h>

enum Fence { BEFORE, AFTER, NONE };  // the barrier: by the threads that write; after it: by all threads
enum Reader { WGMMA, BULK_STORE, BULK_LOAD };
static const char *FENCES[] = {"fence before the barrier", "fence after the barrier", "no fence"};
static const char *READERS[] = {"wgmma", "bulk store", "bulk load over it"};
constexpr int TILES = 8, ELEMENTS = TILES * 64 * 16, ROUNDS = 200, NUMBERS = 7, CTAS = 1056, BYTES = 2 * ELEMENTS;

__device__ uint32_t at(const void *shared) { return __cvta_generic_to_shared(shared); }

__device__ uint64_t descriptor(const void *tile, int leading, int stride) {  // no swizzle
    return (at(tile) & 0x3FFFF) >> 4 | uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32;
}

__device__ void fence() { asm volatile("fence.proxy.async;" ::: "memory"); }

template <class T>
__device__ void store(void *tile, T a, T b) {
    for (int i = threadIdx.x; i < BYTES / int(sizeof(T)); i += 128) ((volatile T *)tile)[i] = i % 2 ? b : a;
}

__device__ void fill(half *tile, int how, int number, const half *numbers) {
    const uint32_t h = __half_as_ushort(__float2half(float(number))), word = h << 16 | h;
    if (how == 0) {  // cp.async
        for (int i = threadIdx.x; i < BYTES / 16; i += 128)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at(tile + 8 * i)),
                         "l"(numbers + number * ELEMENTS + 8 * i) : "memory");
        asm volatile("cp.async.wait_all;" ::: "memory");
    } else if (how == 1)
        store<uint8_t>(tile, h & 255, h >> 8);
    else if (how == 2)
        store<uint16_t>(tile, h, h);
    else if (how == 4)
        store<uint32_t>(tile, word, word);
    else
        for (int i = threadIdx.x; i < BYTES / 16; i += 128)
            asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(at(tile + 8 * i)), "r"(word) : "memory");
}

__device__ float product(const half *A, const half *B) {  // the first of a thread's sums
    float d[4] = {};
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int k = 0; k < TILES; k++)
        asm volatile("{.reg .pred p; setp.ne.b32 p, %6, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0;}"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "l"(descriptor(A + k * 64 * 16, 128, 256)), "l"(descriptor(B, 128, 256)), "r"(k) : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) :: "memory");
    return d[0] == d[1] && d[0] == d[2] && d[0] == d[3] ? d[0] / (16 * TILES) : -1.f;
}

__device__ bool holds(const half *tile, int number) {  // in what this thread looks at
    bool all = true;
    for (int i = threadIdx.x; i < ELEMENTS; i += 128)
        all &= ((const volatile uint16_t *)tile)[i] == __half_as_ushort(__float2half(float(number)));
    return all;
}

__device__ void wait(uint64_t *bar, int phase) {
    int done = 0;
    while (!done)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.s32 %0, 1, 0, p;}"
                     : "=r"(done) : "r"(at(bar)), "r"(phase) : "memory");
}

__global__ void run(int how, int where, int reader, const half *numbers, half *out, unsigned long long *wrong) {
    __shared__ alignas(128) half A[ELEMENTS], B[16 * 8];
    __shared__ uint64_t bar;
    out += size_t(blockIdx.x) * ELEMENTS;
    for (int i = threadIdx.x; i < 16 * 8; i += 128) B[i] = __float2half(1.f);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at(&bar)) : "memory");
    fence();
    __syncthreads();
    for (int round = 0; round < ROUNDS; round++) {
        const int number = round % NUMBERS, other = (round + 3) % NUMBERS;
        fill(A, how, number, numbers);
        if (where == BEFORE) fence();
        __syncthreads();
        if (where == AFTER) fence();
        bool right = true;
        if (reader == WGMMA)
            right = product(A, B) == float(number);
        else if (reader == BULK_STORE) {
            if (threadIdx.x == 0)
                asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                             "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
                             ::"l"(out), "r"(at(A)), "r"(BYTES) : "memory");
            __syncthreads();
            right = holds(out, number);
        } else {
            if (threadIdx.x == 0)
                asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %3;\n"
                             "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%1], [%2], %3, [%0];"
                             ::"r"(at(&bar)), "r"(at(A)), "l"(numbers + other * ELEMENTS), "r"(BYTES) : "memory");
            wait(&bar, round & 1);
            right = holds(A, other);
        }
        if (!right) atomicAdd(wrong, 1ull);
        __syncthreads();
    }
}

int main() {
    unsigned long long *wrong;
    half *numbers, *out;
    cudaMallocManaged(&wrong, sizeof *wrong);
    cudaMallocManaged(&numbers, sizeof(half) * NUMBERS * ELEMENTS);
    cudaMalloc(&out, sizeof(half) * CTAS * ELEMENTS);
    for (int n = 0; n < NUMBERS; n++)
        for (int i = 0; i < ELEMENTS; i++) numbers[n * ELEMENTS + i] = __float2half(float(n));
    for (int reader = 0; reader < 3; reader++)
        for (int how : {1, 2, 4, 16, 0})
            for (int where = 0; where < 3; where++) {
                *wrong = 0;
                run<<<CTAS, 128>>>(how, where, reader, numbers, out, wrong);
                if (cudaDeviceSynchronize() != cudaSuccess)
                    return printf("%s\n", cudaGetErrorString(cudaGetLastError())), 1;
                char name[32];
                snprintf(name, sizeof name, how ? "stores of %d B" : "cp.async", how);
                printf("%s, %s, %s: %llu of %d wrong\n", name, READERS[reader], FENCES[where], *wrong,
                       CTAS * 128 * ROUNDS);
            }
}
