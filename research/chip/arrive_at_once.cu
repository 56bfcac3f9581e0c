// What an mbarrier does with the arrivals of several lanes by one instruction when fewer are pending. PTX ISA
// 9.7.13.15.13 lets each thread arrive for itself, so the rest would count in the next phase.
//
//     nvcc -gencode arch=compute_90a,code=sm_90a -o arrive_at_once research/chip/arrive_at_once.cu && ./arrive_at_once
//
// An H200, 30 November 2026: all three launches fail (unspecified launch failure) wherever the arrivals of one
// instruction exceed what the phase still expects: with and without a state, with a count, for shared::cluster,
// arrive_drop, expect_tx and noComplete. None fails where the lanes arrive one after another, where the arrivals of
// several warps do, or by cp.async.mbarrier.arrive.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

static const char *FORMS[] = {
    "arrive", "arrive, state returned", "arrive, count 2", "arrive, shared::cluster", "arrive_drop", "arrive.expect_tx",
    "cp.async.mbarrier.arrive.noinc", "cp.async.mbarrier.arrive", "arrive, one lane after another", "arrive.noComplete",
};
constexpr int ONE_BY_ONE = 8;

__device__ void arrive(int form, uint32_t bar) {
    uint32_t remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(remote) : "r"(bar));
    switch (form) {
    case 0: case ONE_BY_ONE: asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory"); break;
    case 1: asm volatile("{.reg .b64 s; mbarrier.arrive.shared::cta.b64 s, [%0];}" :: "r"(bar) : "memory"); break;
    case 2: asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 2;" :: "r"(bar) : "memory"); break;
    case 3:
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(remote) : "memory");
        break;
    case 4: asm volatile("mbarrier.arrive_drop.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory"); break;
    case 5: asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 0;" :: "r"(bar) : "memory"); break;
    case 6: asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(bar) : "memory"); break;
    case 7: asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" :: "r"(bar) : "memory"); break;
    case 9:
        asm volatile("{.reg .b64 s; mbarrier.arrive.noComplete.shared::cta.b64 s, [%0], 1;}" :: "r"(bar) : "memory");
        break;
    }
}

__global__ void arrivals(int form, int count, unsigned lanes) {
    __shared__ alignas(8) uint64_t barrier;
    uint32_t bar = __cvta_generic_to_shared(&barrier);
    int lane = threadIdx.x % 32;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory");
    __syncthreads();
    if (lanes >> lane & 1) {
        if (form != ONE_BY_ONE) arrive(form, bar);
        else
            for (int turn = 0; turn < 32; turn++) {
                if (turn == lane) arrive(form, bar);
                __syncwarp(lanes);
            }
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
}

int main(int argc, char **argv) {
    if (argc > 1) {  // one case: a launch that fails leaves a context that cannot launch again
        arrivals<<<1, atoi(argv[4])>>>(atoi(argv[1]), atoi(argv[2]), strtoul(argv[3], nullptr, 16));
        return cudaDeviceSynchronize();
    }
    const struct { int count; const char *lanes; int threads; } cases[] = {
        {32, "ffffffff", 32}, {33, "ffffffff", 32}, {64, "ffffffff", 32}, {31, "ffffffff", 32}, {16, "ffffffff", 32},
        {1, "3", 32}, {2, "80000011", 32}, {255, "ffffffff", 256}, {256, "ffffffff", 256}, {7, "1", 256},
    };
    for (int form = 0; form < 10; form++)
        for (auto &one : cases) {
            std::string command = std::string(argv[0]) + " " + std::to_string(form) + " " + std::to_string(one.count) +
                                  " " + one.lanes + " " + std::to_string(one.threads) + " 2>/dev/null";
            int fails = 0;
            for (int launch = 0; launch < 3; launch++) fails += system(command.c_str()) != 0;
            printf("%s: %d expected, lanes %s of %d warps: %d of 3 launches fail\n", FORMS[form], one.count, one.lanes,
                   one.threads / 32, fails);
            fflush(stdout);
        }
}
