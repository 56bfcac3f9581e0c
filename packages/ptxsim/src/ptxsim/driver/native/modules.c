/* Modules, kernels and variables that the program registers or loads,
    and what the simulator knows about them. */
#define _GNU_SOURCE
#include "standin.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct Variable {
  Module *module;
  void *host;
  char *name;
  void **managed; /* where the program keeps the address of a managed variable */
  struct Variable *next;
} Variable;

struct Module {
  const void *image;
  uint32_t id; /* its number in the simulator; 0: not loaded yet */
};

static Kernel *kernels;
static Variable *variables;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum { WRAPPER = 0x466243b1, FATBIN = 0xba55ed50, ELF = 0x464c457f };

/* Size of an image: in the header of a fat binary; an ELF file ends with its section headers,
    PTX with a NUL. */
static size_t image_size(const void *image) {
  const uint32_t *word = image;
  const unsigned char *byte = image;
  if (*word == FATBIN) return *(const uint64_t *)(byte + 8) + *(const uint16_t *)(byte + 6);
  if (*word == ELF) {
    uint64_t sections = *(const uint64_t *)(byte + 40), programs = *(const uint64_t *)(byte + 32);
    uint64_t last = sections + *(const uint16_t *)(byte + 58) * (uint64_t)*(const uint16_t *)(byte + 60);
    uint64_t other = programs + *(const uint16_t *)(byte + 54) * (uint64_t)*(const uint16_t *)(byte + 56);
    return last > other ? last : other;
  }
  return strlen(image);
}

Module *register_image(const void *image) {
  const uint32_t *word = image;
  Module *module = calloc(1, sizeof *module);
  module->image = *word == WRAPPER ? *(const void *const *)(word + 2) : image;
  return module;
}

static Err ensure(Module *module) {
  if (module->id) return OK;
  return ask(MODULE, module->image, image_size(module->image), &module->id, sizeof module->id);
}

Err load_image(const void *image, Module **module) {
  if (!image || !module) return INVALID_VALUE;
  *module = register_image(image);
  return ensure(*module); /* the program may free the image after this call */
}

uint32_t module_id(const Module *module) { return module->id; }

Err unload(Module *module) { return module->id ? ask(UNLOAD, &module->id, sizeof module->id, NULL, 0) : OK; }

Kernel *register_kernel(Module *module, const void *host, const char *name) {
  Kernel *kernel = calloc(1, sizeof *kernel);
  kernel->module = module, kernel->host = host, kernel->name = strdup(name);
  pthread_mutex_lock(&lock);
  kernel->next = kernels, kernels = kernel;
  pthread_mutex_unlock(&lock);
  return kernel;
}

Kernel *kernel_of(const void *handle) {
  Kernel *at = kernels;
  while (at && at->host != handle && at != handle) at = at->next;
  Dl_info its;
  if (!at && dladdr(handle, &its) && its.dli_fname)
    complain(
        "a kernel of %s does not run, error %d: it was registered with a CUDA runtime that is linked into "
        "that library, or there is machine code only",
        its.dli_fname, INVALID_DEVICE_FUNCTION);
  return at;
}

Err find_kernel(Module *module, const char *name, Kernel **kernel) {
  for (Kernel *at = kernels; at; at = at->next)
    if (at->module == module && !strcmp(at->name, name)) return *kernel = at, kernel_facts(at);
  Kernel made = {.module = module, .name = (char *)name};
  Err error = kernel_facts(&made);
  if (error) return error;
  *kernel = register_kernel(module, NULL, name);
  made.next = (*kernel)->next, made.name = (*kernel)->name;
  **kernel = made;
  return OK;
}

Err kernel_facts(Kernel *kernel) {
  if (kernel->known) return OK;
  Err error = ensure(kernel->module);
  if (error) return error;
  enum { MOST = 4096 };
  struct {
    KernelFacts facts;
    uint32_t layout[2 * MOST];
  } *reply = malloc(sizeof *reply);
  Part parts[] = {{&kernel->module->id, 4}, {kernel->name, strlen(kernel->name)}};
  error = request(FUNCTION, parts, 2, reply, sizeof *reply, NULL);
  if (!error && reply->facts.parameters > MOST) error = NOT_SUPPORTED;
  if (!error) {
    size_t count = reply->facts.parameters, bytes = count * sizeof(uint32_t);
    kernel->facts = reply->facts;
    kernel->offsets = malloc(bytes + 1), kernel->sizes = malloc(bytes + 1);
    memcpy(kernel->offsets, reply->layout, bytes);
    memcpy(kernel->sizes, reply->layout + count, bytes);
    kernel->known = 1;
  }
  free(reply);
  return error;
}

void register_variable(Module *module, void *host, const char *name, size_t size, void **managed) {
  Variable *made = malloc(sizeof *made);
  (void)size;
  pthread_mutex_lock(&lock);
  *made = (Variable){module, host, strdup(name), managed, variables};
  variables = made;
  pthread_mutex_unlock(&lock);
}

Err variable(Module *module, const char *name, void **address, size_t *size) {
  uint64_t place[2] = {0, 0};
  Err error = ensure(module);
  if (error) return error;
  Part parts[] = {{&module->id, 4}, {name, strlen(name)}};
  error = request(GLOBAL, parts, 2, place, sizeof place, NULL);
  if (error) return error;
  if (!block_of((void *)place[0])) remember_block(place[0], place[1], DEVICE);
  if (address) *address = (void *)place[0];
  if (size) *size = place[1];
  return OK;
}

Err variable_of(const void *host, void **address, size_t *size) {
  for (Variable *at = variables; at; at = at->next)
    if (at->host == host || (at->managed && *at->managed == host))
      return variable(at->module, at->name, address, size);
  return INVALID_SYMBOL;
}

Err managed_variables(void) {
  Err error = OK;
  for (Variable *at = variables; at && !error; at = at->next)
    if (at->managed && !*at->managed) error = variable(at->module, at->name, at->managed, NULL);
  return error;
}
