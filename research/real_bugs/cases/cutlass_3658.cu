// source: NVIDIA/cutlass#3658, 2026-09-22
// link: https://github.com/NVIDIA/cutlass/issues/3658
// wrong: the mask of a multicast commit names a CTA that the cluster does not have
// finds: cluster|illegal|out-of-bounds: mask
// launch: threads=128 cluster=2
#define COMMIT "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
KERNEL(128) {
    __shared__ alignas(1024) u32 a[4096], b[2048];
    __shared__ u32 base;
    __shared__ u64 done;
    const u32 t = threadIdx.x;
    if (t == 0) { init(&done, 2); fence_mbarrier_init(); }
    if (t < 32) alloc(&base, 64);
    for (int i = t; i < 4096; i += 128) a[i] = 0;
    for (int i = t; i < 2048; i += 128) b[i] = 0;
    fence_async();
    before_sync();
    cluster_sync();
    after_sync();
    const u32 d = base;
    if (t == 0) {
        mma(d, desc(a), desc(b), 0);
        const unsigned short ctas = BEFORE(7) AFTER(3);
        ASM(COMMIT ::"r"(at(&done)), "h"(ctas) : "memory");
    }
    wait_cluster(&done, 0);
    after_sync();
    out[128 * cta_rank() + t] = read_tmem(d);
    free_all(d, 64);
    cluster_sync();
}
