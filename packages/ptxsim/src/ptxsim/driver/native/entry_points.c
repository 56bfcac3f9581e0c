/* Functions by name: cuGetProcAddress, cudaGetDriverEntryPoint, and for static_runtime.c. */
#define _GNU_SOURCE
#include "standin.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *self(void) {
  static void *handle;
  Dl_info info;
  if (!handle && dladdr((void *)(uintptr_t)entry_point, &info))
    handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  return handle;
}

void *entry_point(const char *name) {
  char longer[128];
  void *found = dlsym(self(), name);
  Dl_info mine, its;
  for (int version = 2; !found && version < 5; version++) {
    snprintf(longer, sizeof longer, "%s_v%d", name, version);
    found = dlsym(self(), longer);
  }
  if (!found || !dladdr(found, &its) || !dladdr((void *)(uintptr_t)entry_point, &mine)) return NULL;
  return its.dli_fbase == mine.dli_fbase ? found : NULL;
}

API Err cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status) {
  (void)version, (void)flags;
  *function = entry_point(name);
  if (status) *status = *function ? 0 : 1;
  return *function ? OK : NOT_FOUND;
}

API Err cuGetProcAddress(const char *name, void **function, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

API Err cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags, int *status) {
  Err error = cuGetProcAddress_v2(name, function, 0, flags, status);
  return note(error && status ? OK : error);
}

API Err cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                         unsigned long long flags, int *status) {
  return (void)version, cudaGetDriverEntryPoint(name, function, flags, status);
}

/* Compiler libraries ask for export tables, too, but work without them. */
static int compiles(const char *file) {
  static const char *const names[] = {"libnvrtc.so", "libnvJitLink.so", "libnvptxcompiler.so"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (!strncmp(file, names[k], strlen(names[k]))) return 1;
  return 0;
}

/* Export tables are not documented; any other caller is a CUDA runtime that was not replaced. */
API Err cuGetExportTable(const void **table, const void *id) {
  (void)id;
  *table = NULL;
  Dl_info its;
  const char *file =
      dladdr(__builtin_return_address(0), &its) && its.dli_fname ? its.dli_fname : "the program";
  const char *name = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
  if (compiles(name)) return NOT_FOUND;
  complain(
      "%s holds a CUDA runtime that could not be replaced: link it with -cudart shared, or do not strip "
      "it. A library of machine code only, such as cuBLAS, cannot run here",
      name);
  return NOT_FOUND;
}
