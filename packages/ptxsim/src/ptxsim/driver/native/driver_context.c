/* CUDA driver API: devices, contexts, memory, streams and events, in terms of the runtime's functions. */
#include "standin.h"
#include <stdio.h>
#include <string.h>

#define FORWARD(name, signature, call) \
  API Err name signature { return call; }
#define DO_NOTHING(name) \
  API Err name(void) { return OK; }

/* Functions of the other files, by their public names. */
Err cudaMemcpyAsync(void *, const void *, size_t, int, void *);
Err cudaMemcpy2DAsync(void *, size_t, const void *, size_t, size_t, size_t, int, void *);
Err cudaStreamCreateWithPriority(void **, unsigned, int);
Err cudaStreamDestroy(void *);
Err cudaStreamSynchronize(void *);
Err cudaStreamWaitEvent(void *, void *, unsigned);
Err cudaEventCreateWithFlags(void **, unsigned);
Err cudaEventRecord(void *, void *);
Err cudaEventDestroy(void *);
Err cudaEventQuery(void *);
Err cudaEventElapsedTime(float *, void *, void *);
Err cudaMemGetInfo(size_t *, size_t *);
Err cudaDriverGetVersion(int *);
Err cudaPointerGetAttributes(void *, const void *);
Err cudaLaunchHostFunc(void *, HostFunction, void *);

static char context[64]; /* the primary context: its address is its handle */
static __thread void *current;

FORWARD(cuInit, (unsigned flags), flags ? INVALID_VALUE : attribute(1) ? OK : NO_DEVICE)
FORWARD(cuDriverGetVersion, (int *version), cudaDriverGetVersion(version))
FORWARD(cuDeviceGetCount, (int *count), (*count = attribute(1) > 0, OK))
FORWARD(cuDeviceGet, (int *device, int ordinal), (*device = 0, ordinal ? INVALID_DEVICE : OK))
FORWARD(cuDeviceGetAttribute, (int *value, int number, int device),
        ((void)device, *value = attribute(number), OK))
FORWARD(cuDeviceComputeCapability, (int *major, int *minor, int device),
        ((void)device, *major = attribute(75), *minor = attribute(76), OK))

API Err cuDeviceGetName(char *name, int size, int device) {
  char block[2048] = {0};
  int32_t asked = 13;
  Err error = ask(PROPERTIES, &asked, sizeof asked, block, sizeof block);
  (void)device;
  if (size > 0) snprintf(name, size, "%s", block);
  return error;
}

API Err cuDeviceTotalMem_v2(size_t *size, int device) { return (void)device, cudaMemGetInfo(NULL, size); }

API Err cuDeviceGetUuid_v2(char *id, int device) {
  return (void)device, memcpy(id, "ptxsim-simulated", 16), OK;
}

FORWARD(cuDeviceGetUuid, (char *id, int device), cuDeviceGetUuid_v2(id, device))
FORWARD(cuDevicePrimaryCtxRetain, (void **made, int device), ((void)device, *made = context, OK))
DO_NOTHING(cuDevicePrimaryCtxRelease_v2)
DO_NOTHING(cuDevicePrimaryCtxSetFlags_v2)
FORWARD(cuDevicePrimaryCtxReset_v2, (int device), ((void)device, forget_errors(), OK))
FORWARD(cuDevicePrimaryCtxGetState, (int device, unsigned *flags, int *active),
        ((void)device, *flags = 0, *active = 1, OK))
FORWARD(cuCtxCreate_v2, (void **made), (current = *made = context, OK))
FORWARD(cuCtxCreate_v3, (void **made), (current = *made = context, OK))
FORWARD(cuCtxCreate_v4, (void **made), (current = *made = context, OK))
DO_NOTHING(cuCtxDestroy_v2)
FORWARD(cuCtxGetCurrent, (void **it), (*it = current, OK))
FORWARD(cuCtxSetCurrent, (void *it), (current = it, OK))
FORWARD(cuCtxPushCurrent_v2, (void *it), (current = it, OK))
FORWARD(cuCtxPopCurrent_v2, (void **it), (it ? *it = current : NULL, OK))
FORWARD(cuCtxGetDevice, (int *device), (*device = 0, OK))
FORWARD(cuCtxGetFlags, (unsigned *flags), (*flags = 0, OK))
FORWARD(cuCtxGetApiVersion, (void *it, unsigned *version), ((void)it, *version = 13000, OK))
FORWARD(cuCtxSynchronize, (void), sticky())
FORWARD(cuCtxGetLimit, (size_t *value, int limit), ((void)limit, *value = 1 << 20, OK))
DO_NOTHING(cuCtxSetLimit)
DO_NOTHING(cuCtxSetCacheConfig)
DO_NOTHING(cuProfilerStart)
DO_NOTHING(cuProfilerStop)
FORWARD(cuCtxGetStreamPriorityRange, (int *least, int *most), (*least = 0, *most = -5, OK))

/* ---- memory ---- */

FORWARD(cuMemAlloc_v2, (void **p, size_t size), size ? allocate(p, size, DEVICE) : INVALID_VALUE)
FORWARD(cuMemAllocAsync, (void **p, size_t size, void *stream), ((void)stream, allocate(p, size, DEVICE)))
FORWARD(cuMemAllocManaged, (void **p, size_t size, unsigned flags), ((void)flags, allocate(p, size, MANAGED)))
FORWARD(cuMemAllocHost_v2, (void **p, size_t size), allocate(p, size, HOST))
FORWARD(cuMemHostAlloc, (void **p, size_t size, unsigned flags), ((void)flags, allocate(p, size, HOST)))
FORWARD(cuMemFree_v2, (void *p), release(p))
FORWARD(cuMemFreeAsync, (void *p, void *stream), ((void)stream, release(p)))
FORWARD(cuMemFreeHost, (void *p), release(p))
FORWARD(cuMemGetInfo_v2, (size_t *available, size_t *total), cudaMemGetInfo(available, total))
FORWARD(cuMemHostGetDevicePointer_v2, (void **device, void *host, unsigned flags),
        ((void)flags, *device = device_pointer(host), *device ? OK : INVALID_VALUE))
FORWARD(cuMemHostRegister_v2, (void *p, size_t size, unsigned flags), ((void)flags, register_host(p, size)))
FORWARD(cuMemHostUnregister, (void *p), unregister_host(p))

API Err cuMemGetAddressRange_v2(void **base, size_t *size, void *p) {
  Block *block = block_of(p);
  if (!block) return NOT_FOUND;
  if (base) *base = (void *)block->address;
  if (size) *size = block->size;
  return OK;
}

FORWARD(cuMemcpy, (void *to, const void *from, size_t size), copy(to, from, size))
FORWARD(cuMemcpyAsync, (void *to, const void *from, size_t n, void *s), cudaMemcpyAsync(to, from, n, 4, s))
FORWARD(cuMemcpyHtoD_v2, (void *to, const void *from, size_t n), cudaMemcpyAsync(to, from, n, 1, NULL))
FORWARD(cuMemcpyDtoH_v2, (void *to, const void *from, size_t n), cudaMemcpyAsync(to, from, n, 2, NULL))
FORWARD(cuMemcpyDtoD_v2, (void *to, const void *from, size_t n), cudaMemcpyAsync(to, from, n, 3, NULL))
FORWARD(cuMemcpyHtoDAsync_v2, (void *to, const void *from, size_t n, void *s),
        cudaMemcpyAsync(to, from, n, 1, s))
FORWARD(cuMemcpyDtoHAsync_v2, (void *to, const void *from, size_t n, void *s),
        cudaMemcpyAsync(to, from, n, 2, s))
FORWARD(cuMemcpyDtoDAsync_v2, (void *to, const void *from, size_t n, void *s),
        cudaMemcpyAsync(to, from, n, 3, s))

static Err filled(void *to, size_t pitch, unsigned value, size_t element, size_t width, size_t height,
                  void *s) {
  Graph *graph = capturing(s);
  if (sticky()) return sticky();
  return graph ? record_fill(graph, to, pitch, value, element, width, height)
               : fill(to, pitch, value, element, width, height);
}

#define FILLS(bits)                                                          \
  FORWARD(cuMemsetD##bits##_v2, (void *to, unsigned v, size_t n),            \
          filled(to, bits / 8 * n, v, bits / 8, bits / 8 * n, 1, NULL))      \
  FORWARD(cuMemsetD##bits##Async, (void *to, unsigned v, size_t n, void *s), \
          filled(to, bits / 8 * n, v, bits / 8, bits / 8 * n, 1, s))
FILLS(8)
FILLS(16)
FILLS(32)

API Err cuPointerGetAttribute(void *value, int number, const void *p) {
  Block *block = block_of(p);
  if (!block) return INVALID_VALUE;
  memset(value, 0, number == 2 ? 4 : 8);
  if (number == 1) *(void **)value = context;
  if (number == 2) *(int *)value = block->kind == HOST ? 1 : 2;
  if (number == 3 || number == 4) *(const void **)value = p;
  if (number == 8) memset(value, block->kind == MANAGED, 1);
  if (number == 11) *(void **)value = (void *)block->address;
  return OK;
}

API Err cuPointerGetAttributes(unsigned count, const int *numbers, void **values, const void *p) {
  for (unsigned i = 0; i < count; i++)
    if (cuPointerGetAttribute(values[i], numbers[i], p)) memset(values[i], 0, 4);
  return OK;
}

/* ---- streams and events ---- */

FORWARD(cuStreamCreate, (void **s, unsigned flags), cudaStreamCreateWithPriority(s, flags, 0))
FORWARD(cuStreamCreateWithPriority, (void **s, unsigned f, int p), cudaStreamCreateWithPriority(s, f, p))
FORWARD(cuStreamDestroy_v2, (void *s), cudaStreamDestroy(s))
FORWARD(cuStreamSynchronize, (void *s), sticky() ? sticky() : cudaStreamSynchronize(s))
FORWARD(cuStreamQuery, (void *s), cudaStreamSynchronize(s))
FORWARD(cuStreamWaitEvent, (void *s, void *event, unsigned flags), cudaStreamWaitEvent(s, event, flags))
FORWARD(cuStreamGetCtx, (void *s, void **it), ((void)s, *it = context, OK))
FORWARD(cuStreamIsCapturing, (void *s, int *status), (*status = capturing(s) != NULL, OK))
FORWARD(cuLaunchHostFunc, (void *s, HostFunction f, void *data), cudaLaunchHostFunc(s, f, data))
FORWARD(cuEventCreate, (void **event, unsigned flags), cudaEventCreateWithFlags(event, flags))
FORWARD(cuEventRecord, (void *event, void *s), cudaEventRecord(event, s))
FORWARD(cuEventQuery, (void *event), cudaEventQuery(event))
FORWARD(cuEventSynchronize, (void *event), sticky() ? sticky() : cudaEventQuery(event))
FORWARD(cuEventDestroy_v2, (void *event), cudaEventDestroy(event))
FORWARD(cuEventElapsedTime, (float *ms, void *one, void *other), cudaEventElapsedTime(ms, one, other))
FORWARD(cuEventElapsedTime_v2, (float *ms, void *one, void *other), cudaEventElapsedTime(ms, one, other))
FORWARD(cuGetErrorString, (Err error, const char **text), (*text = error_text(error), OK))

API Err cuGetErrorName(Err error, const char **text) { /* CUDA_ERROR_ILLEGAL_ADDRESS and so on */
  static __thread char made[64];
  const char *from = error_name(error) + 4; /* without "cuda" */
  char *to = stpcpy(made, error ? "CUDA" : "CUDA_SUCCESS");
  for (; error && *from && to < made + sizeof made - 3; from++) {
    if (*from >= 'A' && *from <= 'Z') *to++ = '_';
    *to++ = *from >= 'a' && *from <= 'z' ? *from - 32 : *from;
  }
  *to = 0;
  return *text = made, OK;
}
