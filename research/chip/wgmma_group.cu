// Does wgmma.wait_group of one warp cover the reads of the other warps of its warpgroup? PTX ISA 9.7.15.7.2.
//
//     nvcc -gencode arch=compute_90a,code=sm_90a -o wgmma_group research/chip/wgmma_group.cu && ./wgmma_group
//
// One warpgroup multiplies 64 x 16 by 16 x 8, all ones. Warp 3 comes late, at one of four places. Warp 0 waits
// for its group, notes the clock, and overwrites A, all of it, and B with zeros. Where a group belongs to the
// warpgroup, warp 0 cannot be done before warp 3 has begun, and D is right; where each warp has its own, warp 3
// reads zeros. An H100, 27 November 2026: warp 0 waits 282 to 530 clocks where nobody is late, 200,282 to 200,560
// at each of the three places where warp 3 is 200,000 late; 0 of 524,288 values wrong. It covers them.

#include <cstdint>
#include <cstdio>
#include <cuda_fp16.h>

static const char *PLACES[] = {"nowhere", "before wgmma.fence", "before wgmma.mma_async", "before commit_group"};

__device__ uint64_t descriptor(const void *at, int leading, int stride) {  // no swizzle
    uint64_t address = __cvta_generic_to_shared(at);
    return (address & 0x3FFFF) >> 4 | uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32;
}

__device__ void late(int place, int here) {
    if (place == here && threadIdx.x / 32 == 3)
        for (long long start = clock64(); clock64() < start + 200000;) {}
}

__global__ void multiply(int place, float *wrong, long long *waited) {
    __shared__ alignas(128) half A[64 * 16], B[16 * 8];
    for (int i = threadIdx.x; i < 64 * 16; i += 128) A[i] = __float2half(1.f);
    for (int i = threadIdx.x; i < 16 * 8; i += 128) B[i] = __float2half(1.f);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    float d[4] = {};
    uint64_t a = descriptor(A, 128, 256), b = descriptor(B, 128, 256);
    long long start = clock64();
    late(place, 1);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    late(place, 2);
    asm volatile("{.reg .pred p; setp.ne.b32 p, 0, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0;}"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b) : "memory");
    late(place, 3);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) :: "memory");
    long long end = clock64();
    if (threadIdx.x < 32) {
        for (int i = threadIdx.x; i < 64 * 16; i += 32) A[i] = __float2half(0.f);
        for (int i = threadIdx.x; i < 16 * 8; i += 32) B[i] = __float2half(0.f);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    if (threadIdx.x == 0) waited[blockIdx.x] = end - start;
    for (float x : d)
        if (x != 16.f) atomicAdd(wrong, 1.f);
}

int main() {
    float *wrong;
    long long *waited;
    cudaMallocManaged(&wrong, sizeof(float));
    cudaMallocManaged(&waited, 1024 * sizeof(long long));
    for (int place = 0; place < 4; place++) {
        *wrong = 0;
        multiply<<<1024, 128>>>(place, wrong, waited);
        if (cudaDeviceSynchronize() != cudaSuccess) return printf("%s\n", cudaGetErrorString(cudaGetLastError())), 1;
        long long least = waited[0], most = waited[0];
        for (int i = 1; i < 1024; i++) {
            least = waited[i] < least ? waited[i] : least;
            most = waited[i] > most ? waited[i] : most;
        }
        printf("warp 3 late %-24s warp 0 waited %lld to %lld clocks, %.0f of 524288 values wrong\n", PLACES[place],
               least, most, *wrong);
    }
}
