/* CUDA runtime API: memory and symbols. */
#include "standin.h"
#include <string.h>

enum { TO_HOST = 2, TO_DEVICE = 1, ON_DEVICE = 3 };

API Err cudaMalloc(void **p, size_t size) { return note(allocate(p, size, DEVICE)); }
API Err cudaFree(void *p) { return note(release(p)); }
API Err cudaMallocHost(void **p, size_t size) { return note(allocate(p, size, HOST)); }
API Err cudaHostAlloc(void **p, size_t size, unsigned flags) { return (void)flags, cudaMallocHost(p, size); }
API Err cudaFreeHost(void *p) { return note(release(p)); }
API Err cudaMallocAsync(void **p, size_t size, void *stream) {
  Graph *graph = capturing(stream);
  return graph ? note(record_allocation(graph, p, size)) : cudaMalloc(p, size);
}

API Err cudaFreeAsync(void *p, void *stream) {
  Graph *graph = capturing(stream);
  return graph ? note(record_free(graph, p)) : cudaFree(p);
}

API Err cudaMallocFromPoolAsync(void **p, size_t size, void *pool, void *stream) {
  return (void)pool, cudaMallocAsync(p, size, stream);
}

API Err cudaMallocManaged(void **p, size_t size, unsigned flags) {
  return (void)flags, note(allocate(p, size, MANAGED));
}

API Err cudaMallocPitch(void **p, size_t *pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return cudaMalloc(p, *pitch * height);
}

API Err cudaMalloc3D(Pitched *made, Extent extent) {
  made->x = extent.width, made->y = extent.height;
  return cudaMallocPitch(&made->pointer, &made->pitch, extent.width, extent.height * extent.depth);
}

API Err cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
  (void)flags;
  *device = device_pointer(host);
  return note(*device ? OK : INVALID_VALUE);
}

API Err cudaHostGetFlags(unsigned *flags, void *host) { return (void)host, *flags = 0, note(OK); }

API Err cudaHostRegister(void *p, size_t size, unsigned flags) {
  return (void)flags, note(register_host(p, size));
}

API Err cudaHostUnregister(void *p) { return note(unregister_host(p)); }
API Err cudaMemAdvise(void) { return note(OK); }
API Err cudaMemPrefetchAsync(void) { return note(OK); }
API Err cudaMemAdvise_v2(void) { return note(OK); }
API Err cudaMemPrefetchAsync_v2(void) { return note(OK); }

API Err cudaPointerGetAttributes(void *attributes, const void *p) {
  struct {
    int type, device;
    const void *on_device, *on_host;
  } *it = attributes;
  Block *block = block_of(p);
  int kind = block ? block->kind : 0;
  it->type = kind, it->device = kind ? 0 : -1;
  it->on_device = kind ? p : NULL, it->on_host = kind == DEVICE ? NULL : p;
  return note(OK);
}

/* ---- copies and fills ---- */

static Err copied(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                  int kind, void *stream) {
  if (sticky()) return note(sticky());
  if (!width || !height) return note(OK);
  int wrong = ((kind == TO_DEVICE || kind == ON_DEVICE) && !in_arena(to)) ||
              ((kind == TO_HOST || kind == ON_DEVICE) && !in_arena(from));
  if (wrong)
    complain("error 1: %s is not device memory, which a copy of this kind needs there: cudaMemcpy(to, from, ..)",
             kind != TO_HOST && !in_arena(to) ? "the target" : "the source");
  if (wrong || kind < 0 || kind > 4) return note(INVALID_VALUE);
  Graph *graph = capturing(stream);
  if (graph) return note(record_copy(graph, to, to_pitch, from, from_pitch, width, height));
  return note(copy_2d(to, to_pitch, from, from_pitch, width, height));
}

API Err cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream) {
  return copied(to, size, from, size, size, 1, kind, stream);
}

API Err cudaMemcpy(void *to, const void *from, size_t size, int kind) {
  return cudaMemcpyAsync(to, from, size, kind, NULL);
}

API Err cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                          size_t height, int kind, void *stream) {
  return copied(to, to_pitch, from, from_pitch, width, height, kind, stream);
}

API Err cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                     size_t height, int kind) {
  return copied(to, to_pitch, from, from_pitch, width, height, kind, NULL);
}

static char *start(const Side *side, size_t plane) {
  const Pitched *m = &side->memory;
  return (char *)m->pointer + ((side->at[2] + plane) * m->y + side->at[1]) * m->pitch + side->at[0];
}

API Err cudaMemcpy3DAsync(const Copy3D *p, void *stream) {
  Err error = p->from.array || p->to.array ? NOT_SUPPORTED : OK;
  for (size_t z = 0; z < p->extent.depth && !error; z++)
    error = copied(start(&p->to, z), p->to.memory.pitch, start(&p->from, z), p->from.memory.pitch,
                   p->extent.width, p->extent.height, p->kind, stream);
  return note(error);
}

API Err cudaMemcpy3D(const Copy3D *p) { return cudaMemcpy3DAsync(p, NULL); }

API Err cudaMemcpyPeerAsync(void *to, int one, const void *from, int other, size_t size, void *stream) {
  return (void)one, (void)other, cudaMemcpyAsync(to, from, size, ON_DEVICE, stream);
}

API Err cudaMemcpyPeer(void *to, int one, const void *from, int other, size_t size) {
  return cudaMemcpyPeerAsync(to, one, from, other, size, NULL);
}

static Err filled(void *to, size_t pitch, int value, size_t width, size_t height, void *stream) {
  if (sticky()) return note(sticky());
  Graph *graph = capturing(stream);
  if (graph) return note(record_fill(graph, to, pitch, (unsigned)value, 1, width, height));
  return note(fill(to, pitch, (unsigned)value, 1, width, height));
}

API Err cudaMemsetAsync(void *to, int value, size_t size, void *stream) {
  return filled(to, size, value, size, 1, stream);
}

API Err cudaMemset(void *to, int value, size_t size) { return filled(to, size, value, size, 1, NULL); }

API Err cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height, void *stream) {
  return filled(to, pitch, value, width, height, stream);
}

API Err cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
  return filled(to, pitch, value, width, height, NULL);
}

API Err cudaMemset3D(Pitched to, int value, Extent extent) {
  return filled(to.pointer, to.pitch, value, extent.width, extent.height * extent.depth, NULL);
}

/* ---- symbols ---- */

API Err cudaGetSymbolAddress(void **address, const void *symbol) {
  return note(variable_of(symbol, address, NULL));
}

API Err cudaGetSymbolSize(size_t *size, const void *symbol) { return note(variable_of(symbol, NULL, size)); }

API Err cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t size, size_t offset, int kind,
                                void *stream) {
  void *address = NULL;
  Err error = variable_of(symbol, &address, NULL);
  return error ? note(error) : cudaMemcpyAsync((char *)address + offset, from, size, kind, stream);
}

API Err cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset, int kind) {
  return cudaMemcpyToSymbolAsync(symbol, from, size, offset, kind, NULL);
}

API Err cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t size, size_t offset, int kind,
                                  void *stream) {
  void *address = NULL;
  Err error = variable_of(symbol, &address, NULL);
  return error ? note(error) : cudaMemcpyAsync(to, (char *)address + offset, size, kind, stream);
}

API Err cudaMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t offset, int kind) {
  return cudaMemcpyFromSymbolAsync(to, symbol, size, offset, kind, NULL);
}
