/* CUDA runtime API: devices, limits, versions. */
#include "standin.h"
#include <string.h>

enum { VERSION = 13000 };

API Err cudaGetDeviceCount(int *count) { return *count = attribute(1) > 0, note(*count ? OK : NO_DEVICE); }
API Err cudaGetDevice(int *device) { return *device = 0, note(OK); }
API Err cudaSetDevice(int device) { return note(device ? INVALID_DEVICE : OK); }
API Err cudaInitDevice(int device) { return note(device ? INVALID_DEVICE : OK); }
API Err cudaChooseDevice(int *device) { return *device = 0, note(OK); }
API Err cudaSetValidDevices(int *devices, int count) { return (void)devices, (void)count, note(OK); }
API Err cudaDeviceSynchronize(void) { return note(OK); }
API Err cudaThreadSynchronize(void) { return note(OK); }
API Err cudaDeviceReset(void) { return forget_errors(), OK; }
API Err cudaThreadExit(void) { return cudaDeviceReset(); }
API Err cudaSetDeviceFlags(unsigned flags) { return (void)flags, note(OK); }
API Err cudaGetDeviceFlags(unsigned *flags) { return *flags = 0, note(OK); }
API Err cudaDeviceSetCacheConfig(int config) { return (void)config, note(OK); }
API Err cudaDeviceGetCacheConfig(int *config) { return *config = 0, note(OK); }
API Err cudaDeviceSetSharedMemConfig(int config) { return (void)config, note(OK); }
API Err cudaDeviceGetSharedMemConfig(int *config) { return *config = 1, note(OK); }
API Err cudaDeviceSetLimit(int limit, size_t value) { return (void)limit, (void)value, note(OK); }
API Err cudaProfilerStart(void) { return note(OK); }
API Err cudaProfilerStop(void) { return note(OK); }
API Err cudaCtxResetPersistingL2Cache(void) { return note(OK); }
API Err cudaDriverGetVersion(int *version) { return *version = VERSION, note(OK); }
API Err cudaRuntimeGetVersion(int *version) { return *version = runtime_major() * 1000, note(OK); }

API Err cudaDeviceGetLimit(size_t *value, int limit) {
  static const size_t limits[] = {1024, 1 << 20, 8 << 20, 2, 2048, 128, 0};
  if (limit < 0 || limit >= (int)COUNT(limits)) return note(INVALID_VALUE);
  return *value = limits[limit], note(OK);
}

API Err cudaDeviceGetAttribute(int *value, int number, int device) {
  if (device) return note(INVALID_DEVICE);
  return *value = attribute(number), note(OK);
}

API Err cudaDeviceGetP2PAttribute(int *value, int number, int one, int other) {
  (void)number, (void)one, (void)other;
  return *value = 0, note(OK);
}

API Err cudaDeviceCanAccessPeer(int *can, int one, int other) {
  return *can = 0, note(one || other ? INVALID_DEVICE : OK);
}

API Err cudaDeviceEnablePeerAccess(int device, unsigned flags) {
  return (void)device, (void)flags, note(INVALID_DEVICE);
}

API Err cudaDeviceDisablePeerAccess(int device) { return (void)device, note(INVALID_DEVICE); }

API Err cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return note(OK);
}

API Err cudaDeviceGetPCIBusId(char *text, int size, int device) {
  if (device || size < 13) return note(device ? INVALID_DEVICE : INVALID_VALUE);
  return strcpy(text, "0000:00:00.0"), note(OK);
}

API Err cudaDeviceGetByPCIBusId(int *device, const char *text) { return (void)text, *device = 0, note(OK); }

static Err properties(void *to, int major) {
  char block[2048] = {0};
  int32_t asked = major;
  size_t size = 0;
  Part part = {&asked, sizeof asked};
  Err error = request(PROPERTIES, &part, 1, block, sizeof block, &size);
  if (!error) memcpy(to, block, size);
  return note(error);
}

API Err cudaGetDeviceProperties(void *to, int device) { /* CUDA 13 has this name, CUDA 12 the other one */
  return device ? note(INVALID_DEVICE) : properties(to, 13);
}

API Err cudaGetDeviceProperties_v2(void *to, int device) {
  return device ? note(INVALID_DEVICE) : properties(to, 12);
}

API Err cudaMemGetInfo(size_t *available, size_t *total) {
  uint64_t both[2] = {0, 0};
  Err error = ask(MEMORY_INFO, NULL, 0, both, sizeof both);
  if (available) *available = both[0];
  if (total) *total = both[1];
  return note(error);
}

/* Memory pools: there is one; its attributes are accepted and ignored. */
static char pool;
API Err cudaDeviceGetDefaultMemPool(void **it, int device) { return (void)device, *it = &pool, note(OK); }
API Err cudaDeviceGetMemPool(void **it, int device) { return (void)device, *it = &pool, note(OK); }
API Err cudaDeviceSetMemPool(int device, void *it) { return (void)device, (void)it, note(OK); }
API Err cudaMemPoolCreate(void **it, const void *properties_) {
  return (void)properties_, *it = &pool, note(OK);
}
API Err cudaMemPoolDestroy(void *it) { return (void)it, note(OK); }
API Err cudaMemPoolTrimTo(void *it, size_t size) { return (void)it, (void)size, note(OK); }
API Err cudaMemPoolSetAttribute(void *it, int a, void *v) { return (void)it, (void)a, (void)v, note(OK); }
API Err cudaMemPoolGetAttribute(void *it, int a, void *v) {
  return (void)it, (void)a, memset(v, 0, 8), note(OK);
}
API Err cudaMemPoolSetAccess(void *it, const void *d, size_t n) {
  return (void)it, (void)d, (void)n, note(OK);
}
