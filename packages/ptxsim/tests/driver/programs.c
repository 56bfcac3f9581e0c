/* What tests of `ptxsim exec` run: the driver API, and the runtime as nvcc's stubs call it. argv[1]: the part. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int Err;
typedef struct { unsigned x, y, z; } Dim3;
Err cuInit(unsigned), cuDeviceGetAttribute(int *, int, int), cuModuleLoadData(void **, const void *);
Err cuModuleGetFunction(void **, void *, const char *), cuModuleGetGlobal_v2(void **, size_t *, void *, const char *);
Err cuMemAlloc_v2(void **, size_t), cuMemFree_v2(void *), cuMemcpyHtoD_v2(void *, const void *, size_t);
Err cuMemcpyDtoH_v2(void *, const void *, size_t), cuMemsetD32_v2(void *, unsigned, size_t), cuCtxSynchronize(void);
Err cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
Err cuLaunchCooperativeKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **);
Err cuGetExportTable(const void **, const void *);
Err cuGetErrorName(Err, const char **), cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
Err cuFuncGetAttribute(int *, int, void *), cuFuncSetAttribute(void *, int, int);
Err cudaMalloc(void **, size_t), cudaMallocManaged(void **, size_t, unsigned), cudaMemcpy(void *, const void *, size_t, int);
Err cudaStreamCreate(void **), cudaStreamBeginCapture(void *, int), cudaStreamEndCapture(void *, void **);
Err cudaGraphInstantiate(void **, void *, unsigned long long), cudaGraphLaunch(void *, void *);
Err cudaMemsetAsync(void *, int, size_t, void *), cudaLaunchKernel(const void *, Dim3, Dim3, void **, size_t, void *);
Err cudaGetLastError(void), cudaEventCreate(void **), cudaEventRecord(void *, void *);
Err cudaEventElapsedTime(float *, void *, void *), cudaMemcpyFromSymbol(void *, const void *, size_t, size_t, int);
Err cuMemHostRegister_v2(void *, size_t, unsigned), cuMemHostUnregister(void *);
Err cuMemHostGetDevicePointer_v2(void **, void *, unsigned);
Err cudaGraphCreate(void **, unsigned), cudaGraphAddHostNode(void **, void *, void **, size_t, const void *);
Err cudaGraphAddDependencies(void *, void **, void **, void *, size_t), cudaGraphGetEdges(void *, void *, void *, void *, size_t *);
Err cudaGraphAddNode(void **, void *, void **, void *, size_t, void *), cudaGraphAddMemFreeNode(void **, void *, void **, size_t, void *);
Err cudaGraphAddMemcpyNode1D(void **, void *, void **, size_t, void *, const void *, size_t, int);
Err cudaGraphExecMemcpyNodeSetParams1D(void *, void *, void *, const void *, size_t, int);
Err cudaGraphAddMemAllocNode(void **, void *, void **, size_t, void *), cudaGraphRemoveDependencies(void *, void **, void **, void *, size_t);
Err cudaMallocAsync(void **, size_t, void *), cudaFreeAsync(void *, void *), cudaMallocArray(void **, void *, size_t, size_t, unsigned);
Err cudaMemcpyAsync(void *, const void *, size_t, int, void *);
Err cuOccupancyMaxPotentialBlockSize(int *, int *, void *, size_t (*)(int), size_t, int);
Err cuOccupancyMaxActiveBlocksPerMultiprocessor(int *, void *, int, size_t), cuStreamGetPriority(void *, int *);
Err cuOccupancyAvailableDynamicSMemPerBlock(size_t *, void *, int, int), cuStreamCreateWithPriority(void **, unsigned, int);
Err cuStreamAddCallback(void *, void (*)(void *, Err, void *), void *, unsigned);
Err cuMemsetD2D8Async(void *, size_t, unsigned char, size_t, size_t, void *);
void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int);

static char *ptx;
static void *module, *add, *device;

static void check(Err error, const char *what) {
  const char *name;
  if (!error) return;
  cuGetErrorName(error, &name);
  printf("%s: %d %s\n", what, error, name);
  exit(7);
}

static void load(void) {
  check(cuInit(0), "init");
  check(cuModuleLoadData(&module, ptx), "load");
  check(cuModuleGetFunction(&add, module, "add"), "function");
  check(cuMemAlloc_v2(&device, 4 * 64), "alloc");
  check(cuMemsetD32_v2(device, 40, 64), "fill");
}

static Err run(void *pointer, int more) {
  void *arguments[] = {&pointer, &more};
  return cuLaunchKernel(add, 2, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL);
}

static void driver(void) {
  int values[64], sms = 0, wrong = 0;
  load();
  check(run(device, 2), "launch");
  check(run(device, 3), "launch");
  check(cuMemcpyDtoH_v2(values, device, sizeof values), "copy");
  for (int i = 0; i < 64; i++) wrong += values[i] != 45;
  void *counter, *encode = NULL;
  size_t size;
  check(cuModuleGetGlobal_v2(&counter, &size, module, "counter"), "global");
  check(cuMemcpyDtoH_v2(values, counter, size), "copy");
  check(cuDeviceGetAttribute(&sms, 16, 0), "attribute");
  check(cuGetProcAddress_v2("cuTensorMapEncodeTiled", &encode, 12000, 0, NULL), "entry point");
  check(cuMemFree_v2(device), "free");
  printf("wrong %d counter %d SMs %d encode %d freed twice %d\n", wrong, values[0], sms, encode != NULL,
         cuMemFree_v2(device));
}

static void outside(void) {
  load();
  Err error = run((char *)device + 4 * 62, 2);
  Err after = cuMemFree_v2(device), sync = cuCtxSynchronize();
  printf("launch %d sync %d free %d\n", error, sync, after);
}

static void together(void) { /* a grid that is too large, one of two blocks, and these by an ordinary launch */
  int more = 2;
  void *arguments[] = {&device, &more};
  load();
  printf("%d ", cuLaunchCooperativeKernel(add, 100000, 1, 1, 32, 1, 1, 0, NULL, arguments));
  printf("%d ", cuLaunchCooperativeKernel(add, 2, 1, 1, 32, 1, 1, 0, NULL, arguments));
  check(cuMemsetD32_v2(device, 40, 64), "fill");
  printf("%d\n", run(device, more));
}

static void shapes(void) {
  unsigned all[][6] = {{0, 1, 1, 32, 1, 1}, {1, 65536, 1, 32, 1, 1}, {1, 1, 1, 1, 1, 65}, {1, 1, 1, 512, 4, 1}};
  int more = 2;
  load();
  for (int i = 0; i < 4; i++) {
    unsigned *s = all[i];
    void *arguments[] = {&device, &more};
    printf("%d ", cuLaunchKernel(add, s[0], s[1], s[2], s[3], s[4], s[5], 0, NULL, arguments, NULL));
  }
  printf("then %d\n", run(device, 2));
}

static void shared(void) {
  void *pointer = NULL, *big;
  load();
  check(cuModuleGetFunction(&big, module, "add"), "function");
  void *arguments[] = {&device, &pointer};
  Err before = cuLaunchKernel(big, 2, 1, 1, 32, 1, 1, 60000, NULL, arguments, NULL);
  Err set = cuFuncSetAttribute(big, 8, 60000), most = cuFuncSetAttribute(big, 8, 300000);
  printf("before %d set %d too much %d after %d\n", before, set, most,
         cuLaunchKernel(big, 2, 1, 1, 32, 1, 1, 60000, NULL, arguments, NULL));
}

static char host_counter;
static void stub(void) {}

static void hosts(void) { /* memory of the program itself, registered in the middle of pages */
  static int own[5000];
  int more = 3, *mine = own + 700, wrong = 0;
  for (int i = 0; i < 5000; i++) own[i] = i;
  load();
  Err early = cuMemHostGetDevicePointer_v2(&device, mine, 0);
  check(cuMemHostRegister_v2(mine, 256, 0), "register");
  check(cuMemHostGetDevicePointer_v2(&device, mine, 0), "pointer");
  check(run(device, more), "launch");
  for (int i = 0; i < 5000; i++) wrong += own[i] != i + (i >= 700 && i < 764 ? 3 : 0);
  check(cuMemHostUnregister(mine), "unregister");
  own[701] += 1;
  printf("early %d wrong %d after %d again %d\n", early, wrong, own[701] + own[763], cuMemHostUnregister(mine));
}

static void heap(void) { /* registered memory of malloc, between whose blocks the stand-in's own notes lie */
  enum { HOLES = 8, SIZE = 40 };
  int wrong = 0, *mine[2];
  void *holes[HOLES], *devices[2];
  load();
  for (int i = 0; i < HOLES; i++) holes[i] = malloc(SIZE);
  for (int i = 0; i < 2; i++) mine[i] = calloc(64, sizeof(int));
  for (int i = 0; i < HOLES; i++) free(holes[i]);
  for (int i = 0; i < 2; i++) check(cuMemHostRegister_v2(mine[i], 256, 0), "register");
  for (int i = 0; i < 2; i++) check(cuMemHostGetDevicePointer_v2(&devices[i], mine[i], 0), "pointer");
  for (int i = 0; i < 2; i++) check(run(devices[i], 3 + i), "launch");
  for (int i = 0; i < 2; i++) check(cuMemHostUnregister(mine[i]), "unregister");
  for (int i = 0; i < 128; i++) wrong += mine[i / 64][i % 64] != 3 + i / 64;
  for (int i = 0; i < 2; i++) free(mine[i]);
  for (int i = 0; i < HOLES; i++) free(malloc(SIZE));
  printf("wrong %d\n", wrong);
}

static void runtime(void) {
  static struct { int magic, version; const void *data; void *more; } wrapper = {0x466243b1, 1, NULL, NULL};
  wrapper.data = ptx;
  void **handle = __cudaRegisterFatBinary(&wrapper), *stream, *graph, *made, *memory, *events[2];
  __cudaRegisterFunction(handle, (const char *)stub, NULL, "add", -1, 0, 0, 0, 0, 0);
  __cudaRegisterVar(handle, &host_counter, NULL, "counter", 0, 4, 0, 0);
  check(cudaMallocManaged(&memory, 256, 1), "managed");
  check(cudaStreamCreate(&stream), "stream");
  check(cudaEventCreate(&events[0]), "event"), check(cudaEventCreate(&events[1]), "event");
  check(cudaEventRecord(events[0], stream), "record");
  int more = 5, counter = 0;
  void *arguments[] = {&memory, &more};
  check(cudaStreamBeginCapture(stream, 0), "begin");
  check(cudaMemsetAsync(memory, 0, 256, stream), "fill");
  check(cudaLaunchKernel((void *)stub, (Dim3){2, 1, 1}, (Dim3){32, 1, 1}, arguments, 0, stream), "launch");
  check(cudaStreamEndCapture(stream, &graph), "end");
  ((int *)memory)[63] = 1000; /* nothing ran yet, and the arguments were taken when it was captured */
  more = 9;
  check(cudaGraphInstantiate(&made, graph, 0), "instantiate");
  for (int i = 0; i < 3; i++) check(cudaGraphLaunch(made, stream), "graph");
  check(cudaEventRecord(events[1], stream), "record");
  float elapsed = -1;
  check(cudaEventElapsedTime(&elapsed, events[0], events[1]), "elapsed");
  check(cudaMemcpyFromSymbol(&counter, &host_counter, 4, 0, 2), "symbol");
  Err unknown = cudaLaunchKernel("no kernel", (Dim3){1, 1, 1}, (Dim3){1, 1, 1}, arguments, 0, NULL);
  Err first = cudaGetLastError(), second = cudaGetLastError();
  printf("last %d counter %d timed %d unknown %d %d %d\n", ((int *)memory)[63], counter, elapsed > 0, unknown, first,
         second);
}

/* As programs that time a kernel do: set back what it changes, launch, again and again. */
static void repeats(void) {
  void *counter;
  int first, last = 0, wrong = 0;
  load();
  check(cuModuleGetGlobal_v2(&counter, NULL, module, "counter"), "global");
  for (int i = 0; i < 5; i++) {
    check(cuMemsetD32_v2(device, 40, 64), "fill"), check(cuMemsetD32_v2(counter, 6, 1), "fill");
    check(run(device, 2), "launch");
    check(cuMemcpyDtoH_v2(&first, device, 4), "copy"), check(cuMemcpyDtoH_v2(&last, counter, 4), "copy");
    wrong += first != 42 || last != 7;
  }
  check(run(device, 2), "launch");
  check(cuMemcpyDtoH_v2(&first, device, 4), "copy");
  printf("wrong %d then %d\n", wrong, first);
}

static char written[64];
static void letter(void *data) { strcat(written, data); }

/* Nodes are added in an order that their edges do not allow; memory of a graph; a captured allocation. */
static void graphs(void) {
  void *graph, *made, *nodes[2], *alloc, *fill, *copied, *ended, *memory, *stream, *pointer, *array;
  struct { void (*call)(void *); void *data; } last = {letter, "b"}, first = {letter, "a"};
  struct { char pool[104]; size_t size; void *pointer; } wanted = {.size = 64};
  unsigned values[16] = {0}, more[16] = {0};
  size_t edges = 0;
  check(cudaGraphCreate(&graph, 0), "create");
  check(cudaGraphAddHostNode(&nodes[0], graph, NULL, 0, &last), "host");
  check(cudaGraphAddHostNode(&nodes[1], graph, NULL, 0, &first), "host");
  check(cudaGraphAddDependencies(graph, &nodes[1], &nodes[0], NULL, 1), "edge");
  check(cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &wanted), "alloc");
  struct { int type, none[3]; void *to; size_t pitch; unsigned value, element; size_t width, height; } filling =
      {2, {0}, wanted.pointer, 0, 7, 4, 16, 1};
  check(cudaGraphAddNode(&fill, graph, &alloc, NULL, 1, &filling), "fill");
  check(cudaGraphAddMemcpyNode1D(&copied, graph, &fill, 1, values, wanted.pointer, 64, 2), "copy");
  check(cudaGraphAddMemFreeNode(&ended, graph, &copied, 1, wanted.pointer), "free");
  check(cudaGraphGetEdges(graph, NULL, NULL, NULL, &edges), "edges");
  check(cudaGraphInstantiate(&made, graph, 0), "instantiate");
  check(cudaGraphLaunch(made, NULL), "launch");
  check(cudaGraphExecMemcpyNodeSetParams1D(made, copied, more, wanted.pointer, 32, 2), "change");
  check(cudaGraphLaunch(made, NULL), "again");
  printf("%s edges %zu values %u more %u %u ", written, edges, values[15], more[7], more[8]);
  check(cudaGraphAddDependencies(graph, &nodes[0], &nodes[1], NULL, 1), "edge");
  Err circle = cudaGraphInstantiate(&made, graph, 0);
  check(cudaStreamCreate(&stream), "stream");
  check(cudaStreamBeginCapture(stream, 0), "begin");
  check(cudaMallocAsync(&pointer, 64, stream), "malloc");
  check(cudaMemsetAsync(pointer, 1, 64, stream), "fill");
  check(cudaMemcpyAsync(values, pointer, 64, 2, stream), "copy");
  check(cudaFreeAsync(pointer, stream), "free");
  check(cudaStreamEndCapture(stream, &graph), "end");
  check(cudaGraphInstantiate(&made, graph, 0), "instantiate");
  check(cudaGraphLaunch(made, stream), "launch");
  check(cudaGraphLaunch(made, stream), "launch");
  printf("circle %d captured %x array %d\n", circle, values[3], cudaMallocArray(&array, NULL, 1, 1, 0));
}

static size_t shared_of(int threads) { return threads > 96 ? 1 << 20 : 0; }
static void called(void *stream, Err status, void *data) { *(int *)data += 1 + status; }

static void driver_asks(void) { /* grid and block for the highest occupancy; streams that are asked */
  int grid, block, blocks, other, small, limited, times = 0, priority = 0;
  unsigned char bytes[16] = {0};
  size_t room;
  void *stream;
  load();
  check(cuOccupancyMaxPotentialBlockSize(&grid, &block, add, NULL, 0, 0), "occupancy");
  check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, block, 0), "occupancy");
  check(cuOccupancyMaxPotentialBlockSize(&other, &small, add, shared_of, 0, 0), "by shared memory");
  check(cuOccupancyMaxPotentialBlockSize(&other, &limited, add, NULL, 0, 40), "limited");
  check(cuOccupancyAvailableDynamicSMemPerBlock(&room, add, 2, 128), "shared memory");
  check(cuStreamCreateWithPriority(&stream, 0, -2), "stream");
  check(cuStreamAddCallback(stream, called, &times, 0), "callback");
  check(cuStreamGetPriority(stream, &priority), "priority");
  check(cuMemsetD2D8Async(device, 8, 7, 3, 2, stream), "fill");
  check(cuMemcpyDtoH_v2(bytes, device, sizeof bytes), "copy");
  printf("block %d grid %d blocks %d small %d limited %d room %zu called %d priority %d bytes %d%d%d%d\n", block, grid,
         blocks, small, limited, room, times, priority, bytes[2], bytes[3] != 7, bytes[10], bytes[11] != 7);
}

static void tables(void) {
  const void *table = "";
  Err error = cuGetExportTable(&table, "0123456789abcdef");
  printf("error %d, a table: %d\n", error, table != NULL);
}

static const struct {
  const char *name;
  void (*run)(void);
} PARTS[] = {{"driver", driver},   {"outside", outside}, {"shared", shared}, {"shapes", shapes},
             {"together", together}, {"runtime", runtime}, {"hosts", hosts},   {"heap", heap},
             {"graphs", graphs},   {"repeats", repeats}, {"tables", tables}, {"asks", driver_asks}};

int main(int count, char **words) {
  FILE *file = fopen(words[2], "rb");
  ptx = calloc(1, 1 << 20);
  if (count < 3 || !file || !fread(ptx, 1, (1 << 20) - 1, file)) return 9;
  for (char *part = strtok(words[1], ","); part; part = strtok(NULL, ",")) {
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
      if (!strcmp(part, PARTS[i].name)) PARTS[i].run();
    if (!strcmp(part, "fails")) return 5;
  }
  return 0;
}
