/* A stand-in for the CUDA driver and runtime: declarations shared by its files.

   The simulator is not in the program's process. The program maps an arena of memory that it shares with the
   ptxsim process, at the addresses that kernels see, and sends that process requests for memory, modules and
   launches over a socket. Every call is complete when it returns, so streams and events are always in order.
   No header of the CUDA toolkit is needed to build this; numbers and layouts are those of its public API. */
#ifndef PTXSIM_STANDIN_H
#define PTXSIM_STANDIN_H

#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

typedef int Err; /* CUresult and cudaError_t: the same numbers for the same things */
enum {
  OK = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  INVALID_CONFIGURATION = 9,
  INVALID_SYMBOL = 13,
  INVALID_DEVICE_FUNCTION = 98,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  NO_IMAGE = 209,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  NOT_READY = 600,
  FIRST_STICKY = 700,
  LAST_STICKY = 719,
  NOT_SUPPORTED = 801,
  CAPTURE_INVALID = 901
};

typedef struct {
  unsigned x, y, z;
} Dim3;

/* wire.c: requests to the simulator */
enum { HELLO, ALLOC, FREE, MODULE, UNLOAD, FUNCTION, GLOBAL, LAUNCH, PROPERTIES, MEMORY_INFO, COMPLAIN };
typedef struct {
  const void *data;
  size_t size;
} Part;
Err request(int op, const Part *parts, int count, void *reply, size_t room, size_t *got);
Err ask(int op, const void *data, size_t size, void *reply, size_t room);
int attribute(int number);              /* of the chip, by CUdevice_attribute */
void complain(const char *format, ...); /* one line by the simulator, each only once */
extern uint64_t arena_base, arena_size;
int open_arena(void); /* a new descriptor of its file */

/* memory.c */
typedef struct Block {
  uint64_t address, size;
  int kind;
  struct Block *next;
} Block;
enum { HOST = 1, DEVICE = 2, MANAGED = 3 };
Err allocate(void **pointer, size_t size, int kind);
Err release(void *pointer);
Block *block_of(const void *pointer);
int in_arena(const void *pointer);
Err register_host(void *pointer, size_t size); /* lets kernels access the program's own memory */
Err unregister_host(void *pointer);
void *device_pointer(const void *host); /* NULL if there is none */
void remember_block(uint64_t address, size_t size, int kind);
Err copy(void *to, const void *from, size_t size);
Err copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height);
Err fill(void *to, size_t pitch, unsigned value, size_t element, size_t width, size_t height);

/* of copies in three dimensions: the runtime's own structs */
typedef struct {
  void *pointer;
  size_t pitch, x, y;
} Pitched;
typedef struct {
  size_t width, height, depth;
} Extent;
typedef struct {
  void *array;
  size_t at[3];
  Pitched memory;
} Side;
typedef struct {
  Side from, to;
  Extent extent;
  int kind;
} Copy3D;

/* modules.c */
typedef struct Kernel Kernel;
typedef struct Module Module;
typedef struct {
  uint64_t shared, constant, local, max_threads, registers, cluster[3], parameters, parameter_bytes;
} KernelFacts;
struct Kernel {
  Module *module;
  char *name;
  const void *host; /* address of the stub in the program; NULL for kernels of the driver API */
  int known;        /* whether facts, offsets and sizes have been filled in */
  KernelFacts facts;
  uint32_t *offsets, *sizes;
  int dynamic_shared, carveout, non_portable, must_cluster[3];
  Kernel *next;
};
Module *register_image(const void *image);
Err load_image(const void *image, Module **module);
Err unload(Module *module);
uint32_t module_id(const Module *module);
Kernel *register_kernel(Module *module, const void *host, const char *name);
Err find_kernel(Module *module, const char *name, Kernel **kernel); /* of a loaded module */
Kernel *kernel_of(const void *host_or_handle);
Err kernel_facts(Kernel *kernel);
void register_variable(Module *module, void *host, const char *name, size_t size, void **managed);
Err variable(Module *module, const char *name, void **address, size_t *size);
Err variable_of(const void *host, void **address, size_t *size);
Err managed_variables(void);

/* launches.c */
typedef struct {
  int id;
  char pad[4];
  union {
    unsigned dim[3];
    int value;
    char bytes[64];
  } value;
} Attribute;
typedef struct {
  Dim3 grid, block, cluster;
  uint64_t shared;
  int cooperative;
} Shape;
Err packed(Kernel *kernel, Shape *shape, void **arguments, void **extra, void **block);
Err launch_packed(Kernel *kernel, const Shape *shape, const void *block, size_t size);
void read_attributes(Shape *shape, const Attribute *attributes, unsigned count);
Err set_kernel_attribute(Kernel *kernel, int attribute_number, int value);
Err kernel_attribute(Kernel *kernel, int attribute_number, int *value);
int blocks_per_sm(Kernel *kernel, int threads, size_t dynamic_shared);
int clusters_of(Kernel *kernel, const Shape *shape);

/* streams.c, below graphs.c */
typedef struct Graph {
  struct Node *first, **last;
  int ended;
} Graph; /* ended: no longer captured */
typedef struct Stream {
  unsigned flags;
  int priority;
  uint64_t id;
  Graph *capture;
} Stream;
Stream *stream_of(void *handle);
Graph *capturing(void *stream); /* the graph into which a stream is captured, or NULL */

/* graphs.c */
typedef void (*HostFunction)(void *);
Err record_copy(Graph *graph, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                size_t height);
Err record_fill(Graph *graph, void *to, size_t pitch, unsigned value, size_t element, size_t width,
                size_t height);
Err record_launch(Graph *graph, Kernel *kernel, const Shape *shape, const void *block, size_t size);
Err record_allocation(Graph *graph, void **pointer, size_t size);
Err record_free(Graph *graph, void *pointer);
Err record_host(Graph *graph, HostFunction function, void *data);
Graph *new_graph(void);

/* capture.c, above graphs.c */
Err launch(Kernel *kernel, Shape shape, void **arguments, void **extra, void *stream);

/* errors.c */
Err note(Err error); /* stores the error for cudaGetLastError, and returns it */
Err sticky(void);    /* the error that all later calls return, or 0 */
void forget_errors(void);
const char *error_name(Err error);
const char *error_text(Err error);

void *entry_point(const char *name); /* entry_points.c */
int runtime_major(void);             /* static_runtime.c: 12 or 13, whose structs the program knows */

#endif
