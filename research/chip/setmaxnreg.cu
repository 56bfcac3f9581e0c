// What setmaxnreg does when the warps of a warpgroup execute it with different counts, or some execute none. PTX ISA
// 9.7.19.5 requires the same of all four warps.
//
//     nvcc -gencode arch=compute_90a,code=sm_90a -o setmaxnreg research/chip/setmaxnreg.cu && ./setmaxnreg
//
// An H200, 30 November 2026: all three launches of every form end, with all stores right. (An inc to fewer registers
// than the warp has, 152 of 160, ends with an illegal instruction.)

#include <cstdio>
#include <cstdlib>
#include <string>

#define SET(way, count) asm volatile("setmaxnreg." #way ".sync.aligned.u32 " #count ";")

__global__ __launch_bounds__(384, 1) void counts(int form, unsigned *out) {
    int warp = threadIdx.x / 32, wg = warp / 4;
    if (wg == 0) {
        switch (form) {
        case 0: SET(dec, 40); break;
        case 1: if (warp == 0) SET(dec, 40); else SET(dec, 48); break;
        case 2: if (warp == 3) SET(dec, 24); else SET(dec, 96); break;
        case 3: if (warp == 0) SET(dec, 40); break;
        case 4: if (warp != 0) SET(dec, 40); break;
        case 5: case 7: case 8: SET(dec, 40); break;
        case 6: if (warp == 0) SET(dec, 40); else SET(dec, 48); break;
        }
    } else if (form >= 5) {
        if (form == 5 && warp == 4) SET(inc, 216);
        else if (form < 8 || warp == 4) SET(inc, 224);
    }
    __syncthreads();
    out[threadIdx.x] = threadIdx.x + 1;
}
int main(int argc, char **argv) {
    if (argc > 1) {
        unsigned *out, held[384];
        cudaMalloc(&out, 1536);
        cudaMemset(out, 0, 1536);
        counts<<<1, 384>>>(atoi(argv[1]), out);
        cudaError_t end = cudaDeviceSynchronize();
        if (end) return printf("%s\n", cudaGetErrorString(end)), 1;
        cudaMemcpy(held, out, 1536, cudaMemcpyDeviceToHost);
        int wrong = 0;
        for (int i = 0; i < 384; i++) wrong += held[i] != i + 1;
        return printf("ends, %d wrong\n", wrong), 0;
    }
    const char *forms[] = {"all 40", "40 and 48s", "96s and 24", "one warp alone", "all but one",
                           "40, then inc 216 and 224s", "40 and 48s, then inc 224", "40, then inc 224",
                           "40, then inc 224 by one warp"};
    for (int form = 0; form < 9; form++)
        for (int launch = 0; launch < 3; launch++) {
            printf("%s: ", forms[form]);
            fflush(stdout);
            std::string command = "timeout 10 " + std::string(argv[0]) + " " + std::to_string(form) +
                                  " || echo ' stopped'";
            system(command.c_str());
        }
}
