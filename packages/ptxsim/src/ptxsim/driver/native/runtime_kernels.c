/* CUDA runtime API: registration by nvcc's code, launches, attributes of kernels, occupancy. */
#include "standin.h"
#include <string.h>

typedef struct {
  size_t shared, constant, local;
  int threads, registers, ptx, binary, cache, dynamic, carveout, must, cluster[3], policy, non_portable,
      rest[16];
} FunctionAttributes;
typedef struct {
  Dim3 grid, block;
  size_t shared;
  void *stream;
  const Attribute *attributes;
  unsigned count;
} Config;

API void **__cudaRegisterFatBinary(void *image) { return (void **)register_image(image); }
API void __cudaRegisterFatBinaryEnd(void **module) { (void)module; }
API void __cudaUnregisterFatBinary(void **module) { (void)module; }

API void __cudaRegisterFunction(void **module, const char *host, char *device, const char *name) {
  (void)device;
  register_kernel((Module *)module, host, name);
}

API void __cudaRegisterVar(void **module, char *host, char *device, const char *name, int ext, size_t size) {
  (void)device, (void)ext;
  register_variable((Module *)module, host, name, size, NULL);
}

API void __cudaRegisterManagedVar(void **module, void **host, char *device, const char *name, int ext,
                                  size_t size) {
  (void)device, (void)ext;
  register_variable((Module *)module, host, name, size, host);
}

API char __cudaInitModule(void **module) { return (void)module, note(managed_variables()) == OK; }

API void __cudaRegisterTexture(void) { complain("texture references are not modelled"); }
API void __cudaRegisterSurface(void) { complain("surface references are not modelled"); }

/* The launch that <<< >>> has configured but whose stub has not run yet. */
static __thread struct {
  Dim3 grid, block;
  size_t shared;
  void *stream;
} pushed[16];
static __thread int depth;

API unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, size_t shared, void *stream) {
  if (depth == COUNT(pushed)) return 1;
  pushed[depth].grid = grid, pushed[depth].block = block;
  pushed[depth].shared = shared, pushed[depth].stream = stream;
  depth++;
  return 0;
}

API Err __cudaPopCallConfiguration(Dim3 *grid, Dim3 *block, size_t *shared, void **stream) {
  if (!depth) return INVALID_CONFIGURATION;
  depth--;
  *grid = pushed[depth].grid, *block = pushed[depth].block;
  *shared = pushed[depth].shared, *stream = pushed[depth].stream;
  return OK;
}

static Err launched(const void *function, Shape shape, void **arguments, void *stream) {
  Kernel *kernel = kernel_of(function);
  return note(kernel ? launch(kernel, shape, arguments, NULL, stream) : INVALID_DEVICE_FUNCTION);
}

API Err cudaLaunchKernel(const void *function, Dim3 grid, Dim3 block, void **arguments, size_t shared,
                         void *stream) {
  return launched(function, (Shape){grid, block, {0, 0, 0}, shared, 0}, arguments, stream);
}

API Err __cudaLaunchKernel(void *kernel, Dim3 grid, Dim3 block, void **arguments, size_t shared,
                           void *stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

API Err cudaLaunchCooperativeKernel(const void *function, Dim3 grid, Dim3 block, void **arguments,
                                    size_t shared, void *stream) {
  return launched(function, (Shape){grid, block, {0, 0, 0}, shared, 1}, arguments, stream);
}

static Shape shape_of(const Config *c) {
  Shape shape = {c->grid, c->block, {0, 0, 0}, c->shared, 0};
  read_attributes(&shape, c->attributes, c->count);
  return shape;
}

API Err cudaLaunchKernelExC(const Config *c, const void *function, void **arguments) {
  return launched(function, shape_of(c), arguments, c->stream);
}

API Err __cudaGetKernel(void **kernel, const void *function) {
  *kernel = kernel_of(function);
  return *kernel ? OK : INVALID_DEVICE_FUNCTION;
}

API Err cudaGetKernel(void **kernel, const void *function) { return note(__cudaGetKernel(kernel, function)); }
API Err cudaGetFuncBySymbol(void **kernel, const void *function) { return cudaGetKernel(kernel, function); }

API Err cudaFuncGetAttributes(FunctionAttributes *to, const void *function) {
  Kernel *kernel = kernel_of(function);
  Err error = kernel ? kernel_facts(kernel) : INVALID_DEVICE_FUNCTION;
  if (error) return note(error);
  const KernelFacts *f = &kernel->facts;
  memset(to, 0, sizeof *to);
  to->shared = f->shared, to->constant = f->constant, to->local = f->local;
  to->threads = (int)f->max_threads, to->registers = (int)f->registers;
  kernel_attribute(kernel, 5, &to->ptx), kernel_attribute(kernel, 6, &to->binary);
  kernel_attribute(kernel, 8, &to->dynamic);
  to->carveout = kernel->carveout, to->must = f->cluster[0] > 0, to->non_portable = kernel->non_portable;
  for (int i = 0; i < 3; i++) to->cluster[i] = (int)f->cluster[i];
  return note(OK);
}

API Err cudaFuncSetAttribute(const void *function, int number, int value) {
  Kernel *kernel = kernel_of(function);
  return note(kernel ? set_kernel_attribute(kernel, number, value) : INVALID_DEVICE_FUNCTION);
}

API Err cudaFuncSetCacheConfig(const void *function, int config) {
  return (void)function, (void)config, note(OK);
}
API Err cudaFuncSetSharedMemConfig(const void *f, int config) { return (void)f, (void)config, note(OK); }

API Err cudaFuncGetName(const char **name, const void *function) {
  Kernel *kernel = kernel_of(function);
  if (kernel) *name = kernel->name;
  return note(kernel ? OK : INVALID_DEVICE_FUNCTION);
}

API Err cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, const void *function, int threads,
                                                               size_t shared, unsigned flags) {
  Kernel *kernel = kernel_of(function);
  (void)flags;
  if (kernel) *count = blocks_per_sm(kernel, threads, shared);
  return note(kernel ? OK : INVALID_DEVICE_FUNCTION);
}

API Err cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *count, const void *function, int threads,
                                                      size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, function, threads, shared, 0);
}

API Err cudaOccupancyMaxActiveClusters(int *count, const void *function, const Config *c) {
  Kernel *kernel = kernel_of(function);
  Shape shape = shape_of(c);
  if (kernel) *count = clusters_of(kernel, &shape);
  return note(kernel ? OK : INVALID_DEVICE_FUNCTION);
}

API Err cudaOccupancyMaxPotentialClusterSize(int *size, const void *function, const Config *c) {
  (void)c;
  Kernel *kernel = kernel_of(function);
  return *size = kernel && kernel->non_portable ? 16 : 8, note(kernel ? OK : INVALID_DEVICE_FUNCTION);
}

API Err cudaOccupancyAvailableDynamicSMemPerBlock(size_t *size, const void *function, int blocks,
                                                  int threads) {
  Kernel *kernel = kernel_of(function);
  (void)threads;
  if (!kernel || blocks < 1) return note(kernel ? INVALID_VALUE : INVALID_DEVICE_FUNCTION);
  Err error = kernel_facts(kernel);
  size_t each = (size_t)attribute(81) / blocks - attribute(111), most = attribute(97);
  *size = (each < most ? each : most) - kernel->facts.shared;
  return note(error);
}
