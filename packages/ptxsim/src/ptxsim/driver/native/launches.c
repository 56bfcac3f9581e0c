/* Launches: arguments -> the bytes of the parameter block; attributes of kernels; occupancy. */
#include "standin.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CUdevice_attribute */
enum {
  THREADS_PER_BLOCK = 1,
  SHARED_PER_BLOCK = 8,
  SMS = 16,
  THREADS_PER_SM = 39,
  CHIP_MAJOR = 75,
  CHIP_MINOR = 76,
  SHARED_PER_SM = 81,
  SHARED_OPTIN = 97,
  BLOCKS_PER_SM = 106,
  RESERVED_SHARED = 111
};
/* CUfunction_attribute; the runtime has the numbers from 8 on */
enum {
  F_THREADS,
  F_SHARED,
  F_CONST,
  F_LOCAL,
  F_REGISTERS,
  F_PTX,
  F_BINARY,
  F_CACHE,
  F_DYNAMIC,
  F_CARVEOUT,
  F_MUST,
  F_WIDTH,
  F_HEIGHT,
  F_DEPTH,
  F_NON_PORTABLE,
  F_POLICY
};
enum { A_COOPERATIVE = 2, A_CLUSTER = 4 };

void read_attributes(Shape *shape, const Attribute *attributes, unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    const unsigned *dim = attributes[i].value.dim;
    if (attributes[i].id == A_CLUSTER) shape->cluster = (Dim3){dim[0], dim[1], dim[2]};
    if (attributes[i].id == A_COOPERATIVE) shape->cooperative = attributes[i].value.value;
  }
}

/* A driver only returns an error; a program that ignores it believes that the kernel ran, hence this line. */
static Err not_launched(const Kernel *kernel, const Shape *shape, Err error, const char *format, ...) {
  const Dim3 *g = &shape->grid, *b = &shape->block;
  char why[256];
  va_list values;
  va_start(values, format);
  vsnprintf(why, sizeof why, format, values);
  va_end(values);
  complain(
      "%s <<<%ux%ux%u, %ux%ux%u>>> is not launched, error %d: %s", kernel->name, g->x, g->y, g->z, b->x, b->y,
      b->z, error, why);
  return error;
}

/* The bytes of shared memory that a block may have, static ones included. From sm_90 on, ptxas accepts static
   arrays beyond the default; an H200's driver then allows as much as a block can have, unless the attribute
   says less. */
static uint64_t allowed_shared(const Kernel *kernel) {
  uint64_t fixed = kernel->facts.shared, most = (uint64_t)attribute(SHARED_PER_BLOCK);
  uint64_t asked = kernel->dynamic_shared > 0 ? fixed + (uint64_t)kernel->dynamic_shared : 0;
  if (!asked && fixed > most && attribute(CHIP_MAJOR) >= 9) return (uint64_t)attribute(SHARED_OPTIN);
  return asked > most ? asked : most;
}

/* The error with which a driver refuses a launch before anything runs, or OK. */
static Err refused(Kernel *kernel, const Shape *shape) {
  const Dim3 *g = &shape->grid, *b = &shape->block;
  uint64_t threads = (uint64_t)b->x * b->y * b->z, shared = kernel->facts.shared + shape->shared;
  uint64_t most = (uint64_t)attribute(THREADS_PER_BLOCK), taken = kernel->facts.max_threads;
#define REFUSE(error, ...) return not_launched(kernel, shape, error, __VA_ARGS__)
  if (!g->x || !g->y || !g->z || !threads) REFUSE(INVALID_CONFIGURATION, "it has no threads");
  if (g->y > 65535 || g->z > 65535) REFUSE(INVALID_CONFIGURATION, "a grid has at most 65535 blocks in y and z");
  if (b->z > 64) REFUSE(INVALID_CONFIGURATION, "a block has at most 64 threads in z");
  if (threads > most) REFUSE(INVALID_CONFIGURATION, "a block has at most %d threads", (int)most);
  if (threads > taken) REFUSE(701, "this kernel allows at most %d threads per block", (int)taken);
  if (shared > (uint64_t)attribute(SHARED_OPTIN))
    REFUSE(
        INVALID_VALUE, "%llu B of shared memory, but a block has at most %d B", (unsigned long long)shared,
        attribute(SHARED_OPTIN));
  if (shared > allowed_shared(kernel))
    REFUSE(
        INVALID_VALUE,
        "%llu B of shared memory, but %llu B are allowed: first call cudaFuncSetAttribute(kernel, "
        "cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)",
        (unsigned long long)shared, (unsigned long long)allowed_shared(kernel));
  int room = attribute(SMS) * blocks_per_sm(kernel, (int)threads, shape->shared);
  if (!shape->cooperative || (uint64_t)g->x * g->y * g->z <= (uint64_t)room) return OK;
  REFUSE(720, "in a cooperative launch at most %d such blocks can run at once", room);
#undef REFUSE
}

Err launch_packed(Kernel *kernel, const Shape *shape, const void *block, size_t size) {
  Err error = refused(kernel, shape);
  if (error) return error;
  uint32_t id = module_id(kernel->module), name = (uint32_t)strlen(kernel->name);
  struct {
    uint32_t module, name;
    Dim3 grid, block, cluster;
    uint32_t cooperative;
    uint64_t shared;
  } head = {id, name, shape->grid, shape->block, shape->cluster, (uint32_t)shape->cooperative, shape->shared};
  Part parts[] = {{&head, sizeof head}, {kernel->name, name}, {block, size}};
  enum { ROOM = 1 << 20 };
  char *printed = malloc(ROOM);
  size_t got = 0;
  error = request(LAUNCH, parts, 3, printed, ROOM, &got);
  fwrite(printed, 1, got < ROOM ? got : ROOM, stdout);
  free(printed);
  return error;
}

/* The parameter block in `extra` of the driver API: pairs of a number and a pointer; 1: the block, 2: its size,
    0: the end. */
static const void *whole_block(void **extra, size_t *size) {
  const void *block = NULL;
  for (; extra && extra[0]; extra += 2) {
    if (extra[0] == (void *)1) block = extra[1];
    if (extra[0] == (void *)2) *size = *(size_t *)extra[1];
  }
  return block;
}

/* Sets the kernel's own cluster in the shape if the launch names none, and allocates the bytes of the parameter
   block (freed by the caller); returns an error code. */
Err packed(Kernel *kernel, Shape *shape, void **arguments, void **extra, void **block) {
  Err error = kernel_facts(kernel);
  if (!error) error = managed_variables();
  if (error) return error;
  if (!shape->cluster.x) {
    const int *set = kernel->must_cluster;
    const uint64_t *fixed = kernel->facts.cluster;
    shape->cluster = set[0] ? (Dim3){set[0], set[1], set[2]} : (Dim3){fixed[0], fixed[1], fixed[2]};
  }
  size_t size = kernel->facts.parameter_bytes, given = size;
  char *bytes = *block = calloc(1, size + 16);
  const void *whole = whole_block(extra, &given);
  if (whole) memcpy(bytes, whole, given < size ? given : size);
  for (uint64_t i = 0; !whole && i < kernel->facts.parameters; i++)
    memcpy(bytes + kernel->offsets[i], arguments[i], kernel->sizes[i]);
  return OK;
}

Err set_kernel_attribute(Kernel *kernel, int number, int value) {
  Err error = kernel_facts(kernel);
  if (error) return error;
  int most = attribute(SHARED_OPTIN) - (int)kernel->facts.shared;
  if (number == F_DYNAMIC && (value < 0 || value > most))
    return complain("%s : error 1: at most %d B of dynamic shared memory, not %d", kernel->name, most, value),
           INVALID_VALUE;
  if (number == F_DYNAMIC) kernel->dynamic_shared = value;
  if (number == F_CARVEOUT) kernel->carveout = value;
  if (number == F_NON_PORTABLE) kernel->non_portable = value;
  if (number >= F_WIDTH && number <= F_DEPTH) kernel->must_cluster[number - F_WIDTH] = value;
  return OK;
}

Err kernel_attribute(Kernel *kernel, int number, int *value) {
  Err error = kernel_facts(kernel);
  if (error) return error;
  const KernelFacts *f = &kernel->facts;
  int chip = 10 * attribute(CHIP_MAJOR) + attribute(CHIP_MINOR);
  int most = attribute(SHARED_PER_BLOCK) - (int)f->shared;
  if (most < 0) most = 0;
  const int values[] = {(int)f->max_threads,
                        (int)f->shared,
                        (int)f->constant,
                        (int)f->local,
                        (int)f->registers,
                        chip,
                        chip,
                        0,
                        kernel->dynamic_shared > most ? kernel->dynamic_shared : most,
                        kernel->carveout,
                        f->cluster[0] > 0,
                        (int)f->cluster[0],
                        (int)f->cluster[1],
                        (int)f->cluster[2],
                        kernel->non_portable,
                        0};
  if (number < 0 || number >= (int)COUNT(values)) return INVALID_VALUE;
  *value = values[number];
  return OK;
}

/* Registers are not considered, because they have not been allocated. */
int blocks_per_sm(Kernel *kernel, int threads, size_t dynamic_shared) {
  if (kernel_facts(kernel) || threads < 1 || threads > attribute(THREADS_PER_BLOCK)) return 0;
  uint64_t shared = kernel->facts.shared + dynamic_shared + attribute(RESERVED_SHARED);
  if (shared > (uint64_t)attribute(SHARED_OPTIN) + attribute(RESERVED_SHARED)) return 0;
  int by_threads = attribute(THREADS_PER_SM) / ((threads + 31) / 32 * 32), most = attribute(BLOCKS_PER_SM);
  int by_shared = shared ? (int)(attribute(SHARED_PER_SM) / shared) : most;
  int least = by_threads < by_shared ? by_threads : by_shared;
  return least < most ? least : most;
}

int clusters_of(Kernel *kernel, const Shape *shape) {
  int ctas = (int)(shape->cluster.x * shape->cluster.y * shape->cluster.z);
  int threads = (int)(shape->block.x * shape->block.y * shape->block.z);
  return ctas ? blocks_per_sm(kernel, threads, shape->shared) * attribute(SMS) / ctas : 0;
}
