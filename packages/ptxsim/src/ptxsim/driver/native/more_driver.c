/* CUDA driver API: choice of block sizes, queries of streams, copies between devices, pools. */
#include "standin.h"

#define FORWARD(name, runtime, signature, call) \
  Err runtime signature;                        \
  API Err name signature { return runtime call; }

enum { THREADS_PER_BLOCK = 1, SMS = 16 }; /* CUdevice_attribute */
typedef size_t (*SharedOf)(int threads);
typedef void (*Callback)(void *stream, Err status, void *data);

/* The block size with the most threads on an SM (the largest of several), and the grid that fills the chip. */
API Err cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, Kernel *kernel, SharedOf shared_of,
                                                  size_t shared, int limit, unsigned flags) {
  (void)flags;
  Err error = kernel ? kernel_facts(kernel) : INVALID_HANDLE;
  if (error) return error;
  int most = kernel->facts.max_threads ? (int)kernel->facts.max_threads : attribute(THREADS_PER_BLOCK);
  if (limit > 0 && limit < most) most = limit;
  *grid = *block = 0;
  for (int threads = most, best = 0; threads > 0; threads = (threads - 1) / 32 * 32) {
    int blocks = blocks_per_sm(kernel, threads, shared_of ? shared_of(threads) : shared);
    if (blocks * threads > best) *block = threads, *grid = blocks * attribute(SMS), best = blocks * threads;
  }
  return *block ? OK : INVALID_VALUE;
}

API Err cuOccupancyMaxPotentialBlockSize(int *grid, int *block, Kernel *kernel, SharedOf shared_of,
                                         size_t shared, int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, kernel, shared_of, shared, limit, 0);
}

FORWARD(cuOccupancyAvailableDynamicSMemPerBlock, cudaOccupancyAvailableDynamicSMemPerBlock,
        (size_t *size, const void *kernel, int blocks, int threads), (size, kernel, blocks, threads))

API Err cuOccupancyMaxPotentialClusterSize(int *size, const Kernel *kernel, const void *config) {
  (void)config;
  return kernel ? *size = kernel->non_portable ? 16 : 8, OK : INVALID_HANDLE;
}

FORWARD(cuStreamAddCallback, cudaStreamAddCallback,
        (void *stream, Callback call, void *data, unsigned flags), (stream, call, data, flags))
FORWARD(cuStreamGetFlags, cudaStreamGetFlags, (void *stream, unsigned *flags), (stream, flags))
FORWARD(cuStreamGetPriority, cudaStreamGetPriority, (void *stream, int *priority), (stream, priority))
FORWARD(cuStreamGetId, cudaStreamGetId, (void *stream, uint64_t *id), (stream, id))
FORWARD(cuStreamGetDevice, cudaStreamGetDevice, (void *stream, int *device), (stream, device))
FORWARD(cuStreamSetAttribute, cudaStreamSetAttribute, (void *stream, int number, const void *value),
        (stream, number, value))
FORWARD(cuStreamGetAttribute, cudaStreamGetAttribute, (void *stream, int number, void *value),
        (stream, number, value))
FORWARD(cuStreamCopyAttributes, cudaStreamCopyAttributes, (void *to, void *from), (to, from))
API Err cuStreamAttachMemAsync(void) { return OK; }

FORWARD(cuMemHostGetFlags, cudaHostGetFlags, (unsigned *flags, void *host), (flags, host))
FORWARD(cuMemPoolCreate, cudaMemPoolCreate, (void **pool, const void *wanted), (pool, wanted))
FORWARD(cuMemPoolDestroy, cudaMemPoolDestroy, (void *pool), (pool))
FORWARD(cuMemPoolGetAccess, cudaMemPoolGetAccess, (int *access, void *pool, void *place),
        (access, pool, place))
FORWARD(cuMemRangeGetAttribute, cudaMemRangeGetAttribute,
        (void *value, size_t size, int number, const void *p, size_t count), (value, size, number, p, count))

Err cudaMemcpyAsync(void *, const void *, size_t, int, void *);
API Err cuMemcpyPeerAsync(void *to, void *one, const void *from, void *other, size_t size, void *stream) {
  return (void)one, (void)other, cudaMemcpyAsync(to, from, size, 3, stream);
}

API Err cuMemcpyPeer(void *to, void *one, const void *from, void *other, size_t size) {
  return cuMemcpyPeerAsync(to, one, from, other, size, NULL);
}

#define FILL_2D(bits)                                                                                      \
  API Err cuMemsetD2D##bits##Async(void *to, size_t pitch, unsigned value, size_t width, size_t height,    \
                                   void *stream) {                                                         \
    Graph *graph = capturing(stream);                                                                      \
    if (sticky()) return sticky();                                                                         \
    return graph ? record_fill(graph, to, pitch, value, bits / 8, width * bits / 8, height)                \
                 : fill(to, pitch, value, bits / 8, width * bits / 8, height);                             \
  }
FILL_2D(8)
FILL_2D(16)
FILL_2D(32)
