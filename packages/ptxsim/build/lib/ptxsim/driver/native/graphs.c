/* Graphs: lists of operations in the order in which they were added or captured, run in that order. */
#include "standin.h"
#include <stdlib.h>
#include <string.h>

typedef enum { KERNEL_NODE, COPY_NODE, FILL_NODE, HOST_NODE, EMPTY_NODE, CHILD_NODE } NodeType;
typedef struct Node {
  NodeType type;
  struct Node *origin; /* in the graph that was instantiated */
  union {
    struct { Kernel *kernel; Shape shape; void *block; size_t size; } launch;
    struct { void *to; const void *from; size_t to_pitch, from_pitch, width, height; } copy;
    struct { void *to; size_t pitch, element, width, height; unsigned value; } fill;
    struct { HostFunction function; void *data; } host;
    Graph *child;
  };
  struct Node *next;
} Node;
struct Graph { Node *first, **last; int ended; };

typedef struct { void *function; Dim3 grid, block; unsigned shared; void **arguments, **extra;
    } KernelParams;
typedef struct { void *to; size_t pitch; unsigned value, element; size_t width, height; } FillParams;
typedef struct { HostFunction function; void *data; } HostParams;
typedef struct { void *pointer; size_t pitch, x, y; } Pitched;
typedef struct { void *array; size_t at[3]; Pitched memory; } Side;
typedef struct { Side from, to; size_t extent[3]; int kind; } Copy3D;

Graph *new_graph(void) {
  Graph *graph = calloc(1, sizeof *graph);
  graph->last = &graph->first;
  return graph;
}

int is_open(const Graph *graph) { return !graph->ended; }

static Node *add(Graph *graph, NodeType type) {
  Node *node = calloc(1, sizeof *node);
  node->type = type;
  *graph->last = node, graph->last = &node->next;
  return node;
}

Err record_copy(Graph *graph, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                size_t height) {
  Node *node = add(graph, COPY_NODE);
  node->copy.to = to, node->copy.from = from, node->copy.to_pitch = to_pitch,
      node->copy.from_pitch = from_pitch;
  node->copy.width = width, node->copy.height = height;
  return OK;
}

Err record_fill(Graph *graph, void *to, size_t pitch, unsigned value, size_t element, size_t width,
    size_t height) {
  Node *node = add(graph, FILL_NODE);
  node->fill.to = to, node->fill.pitch = pitch, node->fill.value = value, node->fill.element = element;
  node->fill.width = width, node->fill.height = height;
  return OK;
}

static void set_launch(Node *node, Kernel *kernel, const Shape *shape, const void *block, size_t size) {
  node->launch.kernel = kernel, node->launch.shape = *shape, node->launch.size = size;
  node->launch.block = malloc(size + 16);
  memcpy(node->launch.block, block, size);
}

Err record_launch(Graph *graph, Kernel *kernel, const Shape *shape, const void *block, size_t size) {
  set_launch(add(graph, KERNEL_NODE), kernel, shape, block, size);
  return OK;
}

Err record_host(Graph *graph, HostFunction function, void *data) {
  Node *node = add(graph, HOST_NODE);
  node->host.function = function, node->host.data = data;
  return OK;
}

static Err play(const Graph *graph);

static Err play_node(const Node *n) {
  switch (n->type) {
    case KERNEL_NODE:
      return launch_packed(n->launch.kernel, &n->launch.shape, n->launch.block, n->launch.size);
    case COPY_NODE:
      return copy_2d(n->copy.to, n->copy.to_pitch, n->copy.from, n->copy.from_pitch, n->copy.width,
          n->copy.height);
    case FILL_NODE:
      return fill(n->fill.to, n->fill.pitch, n->fill.value, n->fill.element, n->fill.width, n->fill.height);
    case HOST_NODE: return n->host.function(n->host.data), OK;
    case CHILD_NODE: return play(n->child);
    default: return OK;
  }
}

static Err play(const Graph *graph) {
  Err error = OK;
  for (const Node *node = graph->first; node && !error; node = node->next) error = play_node(node);
  return error;
}

static Graph *duplicate(const Graph *graph) {
  Graph *made = new_graph();
  for (Node *node = graph->first; node; node = node->next) {
    Node *copied = add(made, node->type), *next = copied->next;
    *copied = *node, copied->next = next, copied->origin = node;
    if (node->type == KERNEL_NODE)
      set_launch(copied, node->launch.kernel, &node->launch.shape, node->launch.block, node->launch.size);
    if (node->type == CHILD_NODE) copied->child = duplicate(node->child);
  }
  return made;
}

static Node *instance(Graph *graph, const Node *origin) {
  Node *node = graph->first;
  while (node && node->origin != origin) node = node->next;
  return node;
}

static Err set_kernel(Node *node, const KernelParams *p) {
  Kernel *kernel = kernel_of(p->function);
  Err error = kernel ? kernel_facts(kernel) : INVALID_DEVICE_FUNCTION;
  if (error) return error;
  Shape shape = {p->grid, p->block, {1, 1, 1}, p->shared, 0};
  char *block = calloc(1, kernel->facts.parameter_bytes + 16);
  for (uint64_t i = 0; i < kernel->facts.parameters; i++)
    memcpy(block + kernel->offsets[i], p->arguments[i], kernel->sizes[i]);
  set_launch(node, kernel, &shape, block, kernel->facts.parameter_bytes);
  free(block);
  return OK;
}

static void set_copy3d(Node *node, const Copy3D *p) {
  node->copy.to = (char *)p->to.memory.pointer + p->to.at[1] * p->to.memory.pitch + p->to.at[0];
  node->copy.from = (char *)p->from.memory.pointer + p->from.at[1] * p->from.memory.pitch + p->from.at[0];
  node->copy.to_pitch = p->to.memory.pitch, node->copy.from_pitch = p->from.memory.pitch;
  node->copy.width = p->extent[0], node->copy.height = p->extent[1] * p->extent[2];
}

static void set_fill(Node *node, const FillParams *p) {
  node->fill.to = p->to, node->fill.pitch = p->pitch, node->fill.value = p->value;
  node->fill.element = p->element, node->fill.width = p->width * p->element, node->fill.height = p->height;
}

#define DEPENDENCIES const void *dependencies, size_t count
#define IGNORE (void)dependencies, (void)count

API Err cudaGraphCreate(void **graph, unsigned flags) { return (void)flags, *graph = new_graph(),
    note(OK); }
API Err cudaGraphDestroy(void *graph) { return (void)graph, note(OK); } /* instances point into it */
API Err cudaGraphExecDestroy(void *graph) { return (void)graph, note(OK); }
API Err cudaGraphClone(void **made, void *graph) { return *made = duplicate(graph), note(OK); }

API Err cudaGraphAddKernelNode(void **node, void *graph, DEPENDENCIES, const KernelParams *p) {
  IGNORE;
  return note(set_kernel(*node = add(graph, KERNEL_NODE), p));
}

API Err cudaGraphAddMemcpyNode(void **node, void *graph, DEPENDENCIES, const Copy3D *p) {
  IGNORE;
  return set_copy3d(*node = add(graph, COPY_NODE), p), note(OK);
}

API Err cudaGraphAddMemcpyNode1D(void **node, void *graph, DEPENDENCIES, void *to, const void *from,
    size_t size,
                                 int kind) {
  IGNORE, (void)kind;
  record_copy(graph, to, size, from, size, size, 1);
  for (Node *at = ((Graph *)graph)->first; at; at = at->next) *node = at;
  return note(OK);
}

API Err cudaGraphAddMemsetNode(void **node, void *graph, DEPENDENCIES, const FillParams *p) {
  IGNORE;
  return set_fill(*node = add(graph, FILL_NODE), p), note(OK);
}

API Err cudaGraphAddHostNode(void **node, void *graph, DEPENDENCIES, const HostParams *p) {
  IGNORE;
  Node *made = *node = add(graph, HOST_NODE);
  made->host.function = p->function, made->host.data = p->data;
  return note(OK);
}

API Err cudaGraphAddEmptyNode(void **node, void *graph, DEPENDENCIES) {
  IGNORE;
  return *node = add(graph, EMPTY_NODE), note(OK);
}

API Err cudaGraphAddChildGraphNode(void **node, void *graph, DEPENDENCIES, void *child) {
  IGNORE;
  Node *made = *node = add(graph, CHILD_NODE);
  made->child = duplicate(child);
  return note(OK);
}

API Err cudaGraphAddDependencies(void *graph) { return (void)graph, note(OK);
    } /* order is order of adding */

API Err cudaGraphGetNodes(void *graph, void **nodes, size_t *count) {
  size_t found = 0;
  for (Node *at = ((Graph *)graph)->first; at; at = at->next, found++)
    if (nodes && found < *count) nodes[found] = at;
  *count = found;
  return note(OK);
}

API Err cudaGraphInstantiate(void **made, void *graph) { return *made = duplicate(graph), note(OK); }
API Err cudaGraphInstantiateWithFlags(void **made, void *graph) { return cudaGraphInstantiate(made,
    graph); }
API Err cudaGraphUpload(void *graph, void *stream) { return (void)graph, (void)stream, note(OK); }

API Err cudaGraphLaunch(void *graph, void *stream) {
  Graph *outer = capturing(stream);
  if (outer) return add(outer, CHILD_NODE)->child = duplicate(graph), note(OK);
  return note(play(graph));
}

API Err cudaGraphExecKernelNodeSetParams(void *made, void *node, const KernelParams *p) {
  Node *at = instance(made, node);
  return note(at ? set_kernel(at, p) : INVALID_VALUE);
}

API Err cudaGraphKernelNodeSetParams(void *node, const KernelParams *p) { return note(set_kernel(node,
    p)); }

API Err cudaGraphExecUpdate(void *made, void *graph, void *result) {
  if (result) memset(result, 0, 4); /* cudaGraphExecUpdateSuccess */
  *(Graph *)made = *duplicate(graph);
  return note(OK);
}

API Err cudaStreamBeginCapture(void *stream, int mode) {
  (void)mode;
  return stream_of(stream)->capture = new_graph(), note(OK);
}

API Err cudaStreamEndCapture(void *stream, void **graph) {
  Graph *ended = capturing(stream);
  if (ended) ended->ended = 1; /* for the streams that joined, too */
  return *graph = ended, note(ended ? OK : CAPTURE_INVALID);
}

API Err cudaStreamIsCapturing(void *stream, int *status) { return *status = capturing(stream) != NULL,
    note(OK); }

API Err cudaStreamGetCaptureInfo(void *stream, int *status, uint64_t *id) {
  *status = capturing(stream) != NULL;
  if (id) *id = (uint64_t)capturing(stream);
  return note(OK);
}

API Err cudaStreamGetCaptureInfo_v2(void *stream, int *status, uint64_t *id) {
  return cudaStreamGetCaptureInfo(stream, status, id);
}

API Err cudaStreamGetCaptureInfo_v3(void *stream, int *status, uint64_t *id) {
  return cudaStreamGetCaptureInfo(stream, status, id);
}

API Err cudaThreadExchangeStreamCaptureMode(int *mode) { return (void)mode, note(OK); }
