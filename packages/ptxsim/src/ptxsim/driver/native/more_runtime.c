/* CUDA runtime API: calls that have no effect here, and libraries that programs load explicitly. */
#include "standin.h"
#include <string.h>

API Err cudaStreamSetAttribute(void *stream, int number, const void *value) {
  return (void)stream, (void)number, (void)value, note(OK);
}

API Err cudaStreamGetAttribute(void *stream, int number, void *value) {
  return (void)stream, (void)number, memset(value, 0, 64), note(OK);
}

API Err cudaStreamCopyAttributes(void *to, void *from) { return (void)to, (void)from, note(OK); }
API Err cudaStreamAttachMemAsync(void) { return note(OK); }

API Err cudaMemRangeGetAttribute(void *value, size_t size, int number, const void *p, size_t count) {
  if (!block_of(p)) return note(INVALID_VALUE);
  return (void)number, (void)count, memset(value, 0, size), note(OK);
}

API Err cudaMemPoolGetAccess(int *access, void *pool, void *place) {
  return (void)pool, (void)place, *access = 3, note(OK); /* cudaMemAccessFlagsProtReadWrite */
}

Err cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height, void *stream);
API Err cudaMemset3DAsync(Pitched to, int value, Extent extent, void *stream) {
  return cudaMemset2DAsync(to.pointer, to.pitch, value, extent.width, extent.height * extent.depth, stream);
}

API Err cudaLibraryLoadData(Module **library, const void *image) { return note(load_image(image, library)); }
Err cuLibraryLoadFromFile(Module **library, const char *path);
API Err cudaLibraryLoadFromFile(Module **library, const char *path) {
  return note(cuLibraryLoadFromFile(library, path));
}

API Err cudaLibraryUnload(Module *library) { return note(unload(library)); }
API Err cudaLibraryGetKernel(Kernel **kernel, Module *library, const char *name) {
  return note(find_kernel(library, name, kernel));
}

API Err cudaLibraryGetGlobal(void **address, size_t *size, Module *library, const char *name) {
  return note(variable(library, name, address, size));
}

API Err cudaLibraryGetManaged(void **address, size_t *size, Module *library, const char *name) {
  return note(variable(library, name, address, size));
}

API Err cudaKernelSetAttributeForDevice(Kernel *kernel, int number, int value, int device) {
  return (void)device, note(set_kernel_attribute(kernel, number, value));
}
