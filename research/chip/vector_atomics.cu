// Whether the address of a vector atom or red must be a multiple of the whole vector or of one element. PTX ISA
// 9.7.13.6 and 9.7.13.7 do not say.
//
//     nvcc -gencode arch=compute_90a,code=sm_90a -o vector_atomics research/chip/vector_atomics.cu && ./vector_atomics
//
// An H200, 30 November 2026: of the whole vector, for every form; any other address is misaligned.

#include <cstdio>
#include <cstdlib>
#include <string>

#define RED(type, list, ...) \
    asm volatile("red.global." type " [%0], " list ";" ::"l"(p), __VA_ARGS__ : "memory")
constexpr int FORMS = 12;
static const char *NAMES[FORMS] = {
    "red.v2.f32", "red.v4.f32", "red.v2.f16", "red.v4.f16", "red.v8.f16", "red.v2.f16x2", "red.v4.f16x2", "red.f16x2",
    "red.f32", "red.f16", "atom.v2.f32", "atom.v4.f32",
};
static const int ELEMENT[FORMS] = {4, 4, 2, 2, 2, 4, 4, 4, 4, 2, 4, 4};
static const int WHOLE[FORMS] = {8, 16, 4, 8, 16, 8, 16, 4, 4, 2, 8, 16};

__global__ void add(int form, char *p) {
    unsigned short h = 0x3c00;
    unsigned hh = 0x3c003c00;
    float f = 1, a, b, c, d;
    switch (form) {
    case 0: RED("add.v2.f32", "{%1, %1}", "f"(f)); break;
    case 1: RED("add.v4.f32", "{%1, %1, %1, %1}", "f"(f)); break;
    case 2: RED("add.noftz.v2.f16", "{%1, %1}", "h"(h)); break;
    case 3: RED("add.noftz.v4.f16", "{%1, %1, %1, %1}", "h"(h)); break;
    case 4: RED("add.noftz.v8.f16", "{%1, %1, %1, %1, %1, %1, %1, %1}", "h"(h)); break;
    case 5: RED("add.noftz.v2.f16x2", "{%1, %1}", "r"(hh)); break;
    case 6: RED("add.noftz.v4.f16x2", "{%1, %1, %1, %1}", "r"(hh)); break;
    case 7: RED("add.noftz.f16x2", "%1", "r"(hh)); break;
    case 8: RED("add.f32", "%1", "f"(f)); break;
    case 9: RED("add.noftz.f16", "%1", "h"(h)); break;
    case 10:
        asm volatile("atom.global.add.v2.f32 {%0, %1}, [%2], {%3, %3};"
                     : "=f"(a), "=f"(b) : "l"(p), "f"(f) : "memory");
        break;
    case 11:
        asm volatile("atom.global.add.v4.f32 {%0, %1, %2, %3}, [%4], {%5, %5, %5, %5};"
                     : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(p), "f"(f) : "memory");
        break;
    }
}

int main(int argc, char **argv) {
    if (argc > 1) {  // one case: a launch that fails leaves a context that cannot launch again
        char *p;
        cudaMalloc(&p, 64);
        cudaMemset(p, 0, 64);
        add<<<1, 1>>>(atoi(argv[1]), p + atoi(argv[2]));
        cudaError_t end = cudaDeviceSynchronize();
        if (end) return printf("%s\n", cudaGetErrorString(end)), 1;
        unsigned char held[64];
        cudaMemcpy(held, p, 64, cudaMemcpyDeviceToHost);
        for (int i = 0; i < 48; i += 2) printf("%d", held[i + 1] != 0 || held[i] != 0);
        printf("\n");
        return 0;
    }
    for (int form = 0; form < FORMS; form++)
        for (int offset = ELEMENT[form] / 2; offset <= WHOLE[form]; offset += ELEMENT[form] / 2) {
            printf("%s at %d: ", NAMES[form], offset);
            fflush(stdout);
            std::string command = std::string(argv[0]) + " " + std::to_string(form) + " " + std::to_string(offset);
            system(command.c_str());
        }
}
