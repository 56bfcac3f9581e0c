// What every case is written with: one line of inline PTX each, with the name that PTX or CUDA gives it.
// BEFORE(..) stands in the kernel with the fault only, AFTER(..) in the mended one only.
#ifdef MENDED
#define BEFORE(...)
#define AFTER(...) __VA_ARGS__
#else
#define BEFORE(...) __VA_ARGS__
#define AFTER(...)
#endif
typedef unsigned int u32;
typedef unsigned long long u64;
#define DEV __device__ __forceinline__
#define ASM(...) asm volatile(__VA_ARGS__)
#define MAP const __grid_constant__ CUtensorMap
// tile: boxes of 128 rows x 64 halves, 128B swizzle; row: boxes of 32 x 32 floats of `in`; store: the same of `out`
#define KERNEL(threads)                                                                             \
    extern "C" __global__ void __launch_bounds__(threads)                                           \
        kernel(MAP tile, MAP row, MAP store, const float *in, float *out, u32 *words)

DEV u32 at(const void *p) { return (u32)__cvta_generic_to_shared(p); }
DEV u32 cta_rank() { u32 r; ASM("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
DEV u32 mapa(const void *p, u32 cta) {
    u32 r; ASM("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(at(p)), "r"(cta)); return r;
}
DEV bool elect() {
    u32 p; ASM("{.reg .pred q; elect.sync _|q, -1; selp.u32 %0, 1, 0, q;}" : "=r"(p)); return p;
}
DEV float ld_peer(u32 a) {
    float v; ASM("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(a) : "memory"); return v;
}
DEV void st_peer(u32 a, float v) { ASM("st.shared::cluster.f32 [%0], %1;" ::"r"(a), "f"(v) : "memory"); }

// barriers of threads
DEV void bar(u32 id, u32 n) { ASM("bar.sync %0, %1;" ::"r"(id), "r"(n) : "memory"); }
DEV void bar_arrive(u32 id, u32 n) { ASM("bar.arrive %0, %1;" ::"r"(id), "r"(n) : "memory"); }
DEV void cluster_arrive() { ASM("barrier.cluster.arrive.aligned;" ::: "memory"); }
DEV void cluster_arrive_relaxed() { ASM("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
DEV void cluster_wait() { ASM("barrier.cluster.wait.aligned;" ::: "memory"); }
DEV void cluster_sync() { cluster_arrive(); cluster_wait(); }

// mbarriers
DEV void init(u64 *b, u32 n) { ASM("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(b)), "r"(n) : "memory"); }
DEV void inval(u64 *b) { ASM("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(at(b)) : "memory"); }
DEV void fence_mbarrier_init() { ASM("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEV void arrive(u64 *b) { ASM("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(b)) : "memory"); }
DEV void arrive_peer(u32 b) { ASM("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(b) : "memory"); }
DEV void arrive_peer_cta_scope(u32 b) {
    ASM("mbarrier.arrive.release.cta.shared::cluster.b64 _, [%0];" ::"r"(b) : "memory");
}
DEV void expect(u64 *b, u32 bytes) {
    ASM("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(b)), "r"(bytes) : "memory");
}
DEV bool test(u64 *b, u32 parity) {
    u32 p;
    ASM("{.reg .pred q; mbarrier.try_wait.parity.shared::cta.b64 q, [%1], %2; selp.u32 %0, 1, 0, q;}"
        : "=r"(p) : "r"(at(b)), "r"(parity) : "memory");
    return p;
}
DEV void wait(u64 *b, u32 parity) { while (!test(b, parity)) {} }
DEV void wait_cluster(u64 *b, u32 parity) {
    u32 p = 0;
    while (!p)
        ASM("{.reg .pred q; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 q, [%1], %2;"
            " selp.u32 %0, 1, 0, q;}" : "=r"(p) : "r"(at(b)), "r"(parity) : "memory");
}

// proxies, TMA, bulk copies
DEV void fence_async() { ASM("fence.proxy.async.shared::cta;" ::: "memory"); }
DEV void load(void *to, const CUtensorMap *m, int x, int y, u64 *b) {
    ASM("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
        ::"r"(at(to)), "l"(m), "r"(at(b)), "r"(x), "r"(y) : "memory");
}
DEV void load_multicast(void *to, const CUtensorMap *m, int x, int y, u64 *b, unsigned short ctas) {
    ASM("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%3, %4}], [%2], %5;"
        ::"r"(at(to)), "l"(m), "r"(at(b)), "r"(x), "r"(y), "h"(ctas) : "memory");
}
DEV void store_tile(const CUtensorMap *m, int x, int y, const void *from) {
    ASM("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
        ::"l"(m), "r"(at(from)), "r"(x), "r"(y) : "memory");
}
DEV void bulk_load(void *to, const void *from, u32 bytes, u64 *b) {
    ASM("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        ::"r"(at(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(at(b)) : "memory");
}
DEV void bulk_store(void *to, const void *from, u32 bytes) {
    ASM("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
        ::"l"(__cvta_generic_to_global(to)), "r"(at(from)), "r"(bytes) : "memory");
}
DEV void bulk_commit() { ASM("cp.async.bulk.commit_group;" ::: "memory"); }
template <int N> DEV void bulk_wait() { ASM("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory"); }
template <int N> DEV void bulk_wait_read() { ASM("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory"); }

// cp.async
DEV void copy16(void *to, const void *from, u32 bytes = 16) {
    ASM("cp.async.cg.shared.global [%0], [%1], 16, %2;"
        ::"r"(at(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes) : "memory");
}
DEV void copy_commit() { ASM("cp.async.commit_group;" ::: "memory"); }
template <int N> DEV void copy_wait() { ASM("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
DEV void copy_arrive(u64 *b) { ASM("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(at(b)) : "memory"); }

// wgmma: m64n8k16, A of registers or of shared memory (64 rows x 64 halves, 128B swizzle)
DEV u64 wgmma_desc(const void *p) { return (u64)((at(p) & 0x3FFFF) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62; }
DEV void wgmma_fence() { ASM("wgmma.fence.sync.aligned;" ::: "memory"); }
DEV void wgmma_commit() { ASM("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> DEV void wgmma_wait() { ASM("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
DEV void wgmma(float (&d)[4], u64 a, u64 b) {
    ASM("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b) : "memory");
}
DEV void wgmma(float (&d)[4], u32 (&a)[4], u64 b) {
    ASM("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b) : "memory");
}

// tcgen05: M 128, N 64, f16 -> f32; operands of 128B swizzle
#define IDESC ((1u << 4) | (64u / 8) << 17 | (128u / 16) << 24)
#define IDESC_PAIR ((1u << 4) | (64u / 8) << 17 | (256u / 16) << 24)
DEV u64 desc(const void *p) {
    return (u64)((at(p) & 0x3FFFF) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 46 | 2ull << 61;
}
DEV void alloc(u32 *to, u32 columns) {
    __syncwarp();
    ASM("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(at(to)), "r"(columns) : "memory");
    ASM("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
}
DEV void dealloc(u32 a, u32 columns) {
    __syncwarp();
    ASM("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(a), "r"(columns) : "memory");
}
DEV void alloc_pair(u32 *to, u32 columns) {
    __syncwarp();
    ASM("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(at(to)), "r"(columns) : "memory");
    ASM("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
}
DEV void dealloc_pair(u32 a, u32 columns) {
    __syncwarp();
    ASM("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(a), "r"(columns) : "memory");
}
DEV void mma(u32 d, u64 a, u64 b, u32 add) {
    ASM("{.reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;}"
        ::"r"(d), "l"(a), "l"(b), "r"(IDESC), "r"(add) : "memory");
}
DEV void mma_pair(u32 d, u64 a, u64 b, u32 add) {
    ASM("{.reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p;}"
        ::"r"(d), "l"(a), "l"(b), "r"(IDESC_PAIR), "r"(add) : "memory");
}
DEV void mma_ts(u32 d, u32 a, u64 b, u32 add) {  // A in tensor memory
    ASM("{.reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p;}"
        ::"r"(d), "r"(a), "l"(b), "r"(IDESC), "r"(add) : "memory");
}
DEV void commit(u64 *b) {
    ASM("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(at(b)) : "memory");
}
DEV void commit_pair(u64 *b, unsigned short ctas) {
    ASM("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
        ::"r"(at(b)), "h"(ctas) : "memory");
}
DEV void before_sync() { ASM("tcgen05.fence::before_thread_sync;" ::: "memory"); }
DEV void after_sync() { ASM("tcgen05.fence::after_thread_sync;" ::: "memory"); }
// a warp reads or writes the 32 lanes of tensor memory that are its own
DEV u32 lanes(u32 a) { return a + ((threadIdx.x / 32 % 4) << 21); }
DEV float ld_tmem(u32 a) {
    u32 v; ASM("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(v) : "r"(lanes(a)) : "memory");
    return __uint_as_float(v);
}
DEV void st_tmem(u32 a, u32 v) {
    ASM("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(lanes(a)), "r"(v) : "memory");
}
DEV void wait_ld() { ASM("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }
DEV void wait_st() { ASM("tcgen05.wait::st.sync.aligned;" ::: "memory"); }
DEV float read_tmem(u32 a) {
    const float v = ld_tmem(a);
    wait_ld();
    return v;
}
// end of a kernel with tensor memory: everybody is done, warp 0 frees
DEV void free_all(u32 a, u32 columns) {
    before_sync();
    __syncthreads();
    after_sync();
    if (threadIdx.x < 32) dealloc(a, columns);
}
