/* Graphs: operations that run in an order that their edges allow. */
#include "graphs.h"
#include <stdlib.h>
#include <string.h>

API Err cudaEventRecordWithFlags(void *event, void *stream, unsigned flags);

Graph *new_graph(void) {
  Graph *graph = calloc(1, sizeof *graph);
  graph->last = &graph->first;
  return graph;
}

void add_dependency(Node *node, Node *before) {
  node->after = realloc(node->after, (node->count + 1) * sizeof *node->after);
  node->after[node->count++] = before;
}

Node *add_node(Graph *graph, NodeType type, void *after, size_t count) {
  Node *node = calloc(1, sizeof *node);
  node->type = type;
  for (size_t i = 0; after && i < count; i++) add_dependency(node, ((Node **)after)[i]);
  *graph->last = node, graph->last = &node->next;
  return node;
}

static Node *add(Graph *graph, NodeType type) { return add_node(graph, type, NULL, 0); }

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

Err record_allocation(Graph *graph, void **pointer, size_t size) {
  AllocParams asked = {.size = size};
  Err error = set_memory(add(graph, ALLOC_NODE), &asked);
  return *pointer = asked.pointer, error;
}

Err record_free(Graph *graph, void *pointer) { return add(graph, FREE_NODE)->memory.pointer = pointer, OK; }

/* An allocation node keeps its memory; if it was freed outside of the graph, allocates it at its address again. */
static Err take_again(const Node *node) {
  void *again = NULL;
  if (block_of(node->memory.pointer)) return OK;
  Err error = allocate(&again, node->memory.size, DEVICE);
  if (error || again == node->memory.pointer) return error;
  complain("a graph's allocation is not modelled if its address has been given to other memory");
  return release(again), NOT_SUPPORTED;
}

static Err play_node(const Node *n) {
  if (n->disabled) return OK;
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
    case ALLOC_NODE: return take_again(n);
    case RECORD_NODE: return cudaEventRecordWithFlags(n->event, NULL, 0);
    default: return OK;
  }
}

Err play(const Graph *graph) {
  Err error = OK;
  for (const Node *node = graph->first; node && !error; node = node->next) error = play_node(node);
  return error;
}

/* Copies a node after those that it waits for; returns -1 if not all of these have been copied yet. */
static int copy_node(Graph *made, Node *node) {
  for (size_t i = 0; i < node->count; i++)
    if (!node->after[i]->placed) return -1;
  Node *copied = add(made, node->type), fresh = *copied;
  *copied = *node, copied->next = fresh.next, copied->origin = node;
  copied->after = NULL, copied->count = 0, copied->copied = NULL, copied->placed = 0;
  for (size_t i = 0; i < node->count; i++) add_dependency(copied, node->after[i]->copied);
  node->placed = 1, node->copied = copied;
  if (node->type == KERNEL_NODE)
    set_launch(copied, node->launch.kernel, &node->launch.shape, node->launch.block, node->launch.size);
  if (node->type == CHILD_NODE) copied->child = duplicate(node->child);
  return 0;
}

/* A copy with its nodes in an order that the edges allow, the order of creation if possible; NULL for a cycle. */
Graph *duplicate(Graph *graph) {
  Graph *made = new_graph();
  int left = 0, before = -1;
  for (Node *node = graph->first; node; node = node->next) node->placed = 0, left++;
  while (left && left != before) {
    before = left;
    for (Node *node = graph->first; node; node = node->next)
      if (!node->placed && !copy_node(made, node)) left--;
  }
  return left ? NULL : made;
}

Err set_kernel(Node *node, const KernelParams *p) {
  Kernel *kernel = kernel_of(p->function);
  Shape shape = {.grid = p->grid, .block = p->block, .shared = p->shared};
  void *block = NULL;
  Err error = kernel ? packed(kernel, &shape, p->arguments, p->extra, &block) : INVALID_DEVICE_FUNCTION;
  if (error) return error;
  set_launch(node, kernel, &shape, block, kernel->facts.parameter_bytes);
  free(block);
  return OK;
}

Err set_copy3d(Node *node, const Copy3D *p) {
  node->copy.to = (char *)p->to.memory.pointer + p->to.at[1] * p->to.memory.pitch + p->to.at[0];
  node->copy.from = (char *)p->from.memory.pointer + p->from.at[1] * p->from.memory.pitch + p->from.at[0];
  node->copy.to_pitch = p->to.memory.pitch, node->copy.from_pitch = p->from.memory.pitch;
  node->copy.width = p->extent.width, node->copy.height = p->extent.height * p->extent.depth;
  return p->to.array || p->from.array ? NOT_SUPPORTED : OK;
}

Err set_copy(Node *node, void *to, const void *from, size_t size) {
  node->copy.to = to, node->copy.from = from, node->copy.width = size, node->copy.height = 1;
  return node->copy.to_pitch = node->copy.from_pitch = size, OK;
}

Err set_fill(Node *node, const FillParams *p) {
  node->fill.to = p->to, node->fill.pitch = p->pitch, node->fill.value = p->value;
  node->fill.element = p->element, node->fill.width = p->width * p->element, node->fill.height = p->height;
  return OK;
}

Err set_host(Node *node, const HostParams *p) {
  return node->host.function = p->function, node->host.data = p->data, OK;
}

Err set_memory(Node *node, AllocParams *p) {
  Err error = allocate(&p->pointer, p->size, DEVICE);
  return node->memory.pointer = p->pointer, node->memory.size = p->size, error;
}
