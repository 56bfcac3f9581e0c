/* CUDA driver API: modules, libraries, functions, launches, occupancy. */
#define _GNU_SOURCE
#include "standin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  Dim3 grid, block;
  unsigned shared;
  void *stream;
  const Attribute *attributes;
  unsigned count;
} Config;

API Err cuModuleLoadData(Module **module, const void *image) { return load_image(image, module); }

API Err cuModuleLoadDataEx(Module **module, const void *image, unsigned count, int *options, void **values) {
  return (void)count, (void)options, (void)values, load_image(image, module);
}

API Err cuModuleLoadFatBinary(Module **module, const void *image) { return load_image(image, module); }

API Err cuModuleLoad(Module **module, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return 301; /* CUDA_ERROR_FILE_NOT_FOUND */
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  char *image = calloc(1, size + 16);
  rewind(file);
  size_t got = fread(image, 1, size, file);
  fclose(file);
  Err error = got == (size_t)size ? load_image(image, module) : 301;
  free(image);
  return error;
}

API Err cuModuleUnload(Module *module) { return unload(module); }
API Err cuModuleGetLoadingMode(int *mode) { return *mode = 2, OK; }
API Err cuModuleGetFunction(Kernel **kernel, Module *module, const char *name) {
  return find_kernel(module, name, kernel);
}

API Err cuModuleGetGlobal_v2(void **address, size_t *size, Module *module, const char *name) {
  return variable(module, name, address, size);
}

API Err cuLibraryLoadData(Module **library, const void *image, int *o, void **ov, unsigned n, int *lo,
                          void **lov, unsigned ln) {
  return (void)o, (void)ov, (void)n, (void)lo, (void)lov, (void)ln, load_image(image, library);
}

API Err cuLibraryLoadFromFile(Module **library, const char *path) { return cuModuleLoad(library, path); }
API Err cuLibraryUnload(Module *library) { return unload(library); }
API Err cuLibraryGetModule(Module **module, Module *library) { return *module = library, OK; }
API Err cuLibraryGetKernel(Kernel **kernel, Module *library, const char *name) {
  return find_kernel(library, name, kernel);
}

API Err cuLibraryGetGlobal(void **address, size_t *size, Module *library, const char *name) {
  return variable(library, name, address, size);
}

API Err cuLibraryGetManaged(void **address, size_t *size, Module *library, const char *name) {
  return variable(library, name, address, size);
}

API Err cuKernelGetFunction(Kernel **function, Kernel *kernel) { return *function = kernel, OK; }
API Err cuKernelGetLibrary(Module **library, Kernel *kernel) { return *library = kernel->module, OK; }
API Err cuFuncGetModule(Module **module, Kernel *kernel) { return *module = kernel->module, OK; }
API Err cuFuncGetName(const char **name, Kernel *kernel) { return *name = kernel->name, OK; }
API Err cuKernelGetName(const char **name, Kernel *kernel) { return *name = kernel->name, OK; }
API Err cuFuncLoad(Kernel *kernel) { return kernel_facts(kernel); }
API Err cuFuncIsLoaded(int *state, Kernel *kernel) { return (void)kernel, *state = 1, OK; }
API Err cuFuncGetAttribute(int *value, int number, Kernel *kernel) {
  return kernel_attribute(kernel, number, value);
}
API Err cuFuncSetAttribute(Kernel *kernel, int number, int value) {
  return set_kernel_attribute(kernel, number, value);
}

API Err cuKernelGetAttribute(int *value, int number, Kernel *kernel, int device) {
  return (void)device, kernel_attribute(kernel, number, value);
}

API Err cuKernelSetAttribute(int number, int value, Kernel *kernel, int device) {
  return (void)device, set_kernel_attribute(kernel, number, value);
}

API Err cuFuncSetCacheConfig(Kernel *kernel, int config) { return (void)kernel, (void)config, OK; }
API Err cuKernelSetCacheConfig(Kernel *k, int config, int device) {
  return (void)k, (void)config, (void)device, OK;
}
API Err cuFuncSetSharedMemConfig(Kernel *kernel, int config) { return (void)kernel, (void)config, OK; }

API Err cuFuncGetParamInfo(Kernel *kernel, size_t index, size_t *offset, size_t *size) {
  Err error = kernel_facts(kernel);
  if (error || index >= kernel->facts.parameters) return error ? error : INVALID_VALUE;
  *offset = kernel->offsets[index];
  if (size) *size = kernel->sizes[index];
  return OK;
}

API Err cuKernelGetParamInfo(Kernel *kernel, size_t index, size_t *offset, size_t *size) {
  return cuFuncGetParamInfo(kernel, index, offset, size);
}

static Err remembered(Err error) {
  note(error);
  return sticky() ? sticky() : error;
}

API Err cuLaunchKernel(Kernel *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                       unsigned bz, unsigned shared, void *stream, void **arguments, void **extra) {
  Shape shape = {{gx, gy, gz}, {bx, by, bz}, {0, 0, 0}, shared, 0};
  return kernel ? remembered(launch(kernel, shape, arguments, extra, stream)) : INVALID_HANDLE;
}

API Err cuLaunchCooperativeKernel(Kernel *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                  unsigned by, unsigned bz, unsigned shared, void *stream, void **arguments) {
  Shape shape = {{gx, gy, gz}, {bx, by, bz}, {0, 0, 0}, shared, 1};
  return kernel ? remembered(launch(kernel, shape, arguments, NULL, stream)) : INVALID_HANDLE;
}

API Err cuLaunchKernelEx(const Config *c, Kernel *kernel, void **arguments, void **extra) {
  Shape shape = {c->grid, c->block, {0, 0, 0}, c->shared, 0};
  read_attributes(&shape, c->attributes, c->count);
  return kernel ? remembered(launch(kernel, shape, arguments, extra, c->stream)) : INVALID_HANDLE;
}

API Err cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, Kernel *kernel, int threads, size_t shared) {
  return *count = blocks_per_sm(kernel, threads, shared), OK;
}

API Err cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, Kernel *kernel, int threads,
                                                             size_t shared, unsigned flags) {
  return (void)flags, *count = blocks_per_sm(kernel, threads, shared), OK;
}

API Err cuOccupancyMaxActiveClusters(int *count, Kernel *kernel, const Config *c) {
  Shape shape = {c->grid, c->block, {0, 0, 0}, c->shared, 0};
  read_attributes(&shape, c->attributes, c->count);
  return *count = clusters_of(kernel, &shape), OK;
}

/* Linking PTX: the first PTX that is added is the result. */
API Err cuLinkCreate_v2(unsigned n, int *options, void **values, void **state) {
  (void)n, (void)options, (void)values;
  return *state = calloc(1, sizeof(char *)), OK;
}

API Err cuLinkAddData_v2(char **state, int type, const char *data, size_t size) {
  if (type != 1 || *state) return complain("cuLink: only one PTX text can be linked"), NOT_SUPPORTED;
  *state = strndup(data, size);
  return OK;
}

API Err cuLinkComplete(char **state, void **image, size_t *size) {
  if (!*state) return INVALID_VALUE;
  *image = *state;
  if (size) *size = strlen(*state) + 1;
  return OK;
}

API Err cuLinkDestroy(char **state) { return (void)state, OK; }
