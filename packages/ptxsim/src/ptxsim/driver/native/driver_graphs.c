/* CUDA driver API: capture and graphs, whose structs are those of the runtime; pools; copies in two dimensions. */
#include "graphs.h"
#include <string.h>

#define FORWARD(name, runtime, parameters, arguments) \
  Err runtime parameters;                             \
  API Err name parameters { return runtime arguments; }

FORWARD(cuStreamBeginCapture_v2, cudaStreamBeginCapture, (void *stream, int mode), (stream, mode))
FORWARD(cuStreamEndCapture, cudaStreamEndCapture, (void *stream, void **graph), (stream, graph))
FORWARD(cuGraphCreate, cudaGraphCreate, (void **graph, unsigned flags), (graph, flags))
FORWARD(cuGraphDestroy, cudaGraphDestroy, (void *graph), (graph))
FORWARD(cuGraphClone, cudaGraphClone, (void **made, void *graph), (made, graph))
FORWARD(cuGraphInstantiateWithFlags, cudaGraphInstantiateWithFlags, (void **made, void *graph), (made, graph))
FORWARD(cuGraphInstantiateWithParams, cudaGraphInstantiateWithParams, (void **made, void *graph, void *p),
        (made, graph, p))
FORWARD(cuGraphExecDestroy, cudaGraphExecDestroy, (void *graph), (graph))
FORWARD(cuGraphUpload, cudaGraphUpload, (void *graph, void *stream), (graph, stream))
FORWARD(cuGraphLaunch, cudaGraphLaunch, (void *graph, void *stream), (graph, stream))
FORWARD(cuGraphExecUpdate_v2, cudaGraphExecUpdate, (void *made, void *graph, void *result),
        (made, graph, result))
FORWARD(cuGraphGetNodes, cudaGraphGetNodes, (Graph *graph, Node **nodes, size_t *count),
        (graph, nodes, count))
FORWARD(cuGraphAddKernelNode_v2, cudaGraphAddKernelNode,
        (void **node, void *graph, AFTER, const KernelParams *p), (node, graph, after, count, p))
FORWARD(cuGraphAddMemsetNode, cudaGraphAddMemsetNode, (void **node, void *graph, AFTER, const FillParams *p),
        (node, graph, after, count, p))
FORWARD(cuGraphAddHostNode, cudaGraphAddHostNode, (void **node, void *graph, AFTER, const HostParams *p),
        (node, graph, after, count, p))
FORWARD(cuGraphAddEmptyNode, cudaGraphAddEmptyNode, (void **node, void *graph, AFTER),
        (node, graph, after, count))
FORWARD(cuGraphAddChildGraphNode, cudaGraphAddChildGraphNode, (void **node, void *graph, AFTER, void *child),
        (node, graph, after, count, child))
FORWARD(cuGraphExecKernelNodeSetParams_v2, cudaGraphExecKernelNodeSetParams,
        (Graph *made, const Node *node, const KernelParams *p), (made, node, p))
FORWARD(cuThreadExchangeStreamCaptureMode, cudaThreadExchangeStreamCaptureMode, (int *mode), (mode))

/* ---- pools: there is one ---- */

FORWARD(cuDeviceGetDefaultMemPool, cudaDeviceGetDefaultMemPool, (void **pool, int device), (pool, device))
FORWARD(cuDeviceGetMemPool, cudaDeviceGetMemPool, (void **pool, int device), (pool, device))
FORWARD(cuMemPoolSetAttribute, cudaMemPoolSetAttribute, (void *pool, int number, void *value),
        (pool, number, value))
FORWARD(cuMemPoolGetAttribute, cudaMemPoolGetAttribute, (void *pool, int number, void *value),
        (pool, number, value))
FORWARD(cuMemPoolTrimTo, cudaMemPoolTrimTo, (void *pool, size_t size), (pool, size))
FORWARD(cuMemAllocFromPoolAsync, cudaMallocFromPoolAsync, (void **p, size_t size, void *pool, void *stream),
        (p, size, pool, stream))

/* ---- calls without effect here, and small queries ---- */

#define DO_NOTHING(name) \
  API Err name(void) { return OK; }
DO_NOTHING(cuMemAdvise)
DO_NOTHING(cuMemAdvise_v2)
DO_NOTHING(cuMemPrefetchAsync)
DO_NOTHING(cuMemPrefetchAsync_v2)
DO_NOTHING(cuMemPoolSetAccess)
DO_NOTHING(cuCtxResetPersistingL2Cache)
DO_NOTHING(cuCtxSetFlags)
DO_NOTHING(cuCtxSetSharedMemConfig)
FORWARD(cuDeviceCanAccessPeer, cudaDeviceCanAccessPeer, (int *can, int one, int other), (can, one, other))
FORWARD(cuDeviceGetPCIBusId, cudaDeviceGetPCIBusId, (char *text, int size, int device), (text, size, device))
FORWARD(cuEventRecordWithFlags, cudaEventRecordWithFlags, (void *event, void *stream, unsigned flags),
        (event, stream, flags))

/* ---- two dimensions ---- */

typedef struct {
  size_t x, y;
  int kind;
  void *host, *device, *array;
  size_t pitch;
} Corner;
typedef struct {
  Corner from, to;
  size_t width, height;
} Copy2D;
enum { ON_HOST = 1, IN_ARRAY = 3 };

static char *start(const Corner *it) {
  return (char *)(it->kind == ON_HOST ? it->host : it->device) + it->y * it->pitch + it->x;
}

Err cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                      size_t height, int kind, void *stream);
API Err cuMemcpy2DAsync_v2(const Copy2D *p, void *stream) {
  if (p->from.kind == IN_ARRAY || p->to.kind == IN_ARRAY) return NOT_SUPPORTED;
  size_t to_pitch = p->to.pitch ? p->to.pitch : p->width,
         from_pitch = p->from.pitch ? p->from.pitch : p->width;
  return cudaMemcpy2DAsync(start(&p->to), to_pitch, start(&p->from), from_pitch, p->width, p->height, 4,
                           stream);
}

API Err cuMemcpy2D_v2(const Copy2D *p) { return cuMemcpy2DAsync_v2(p, NULL); }
API Err cuMemcpy2DUnaligned_v2(const Copy2D *p) { return cuMemcpy2DAsync_v2(p, NULL); }

API Err cuMemAllocPitch_v2(void **p, size_t *pitch, size_t width, size_t height, unsigned element) {
  (void)element;
  *pitch = (width + 511) / 512 * 512;
  return allocate(p, *pitch * height, DEVICE);
}

#define FILL_2D(bits)                                                                                   \
  API Err cuMemsetD2D##bits##_v2(void *to, size_t pitch, unsigned value, size_t width, size_t height) { \
    return fill(to, pitch, value, bits / 8, width * bits / 8, height);                                  \
  }
FILL_2D(8)
FILL_2D(16)
FILL_2D(32)
