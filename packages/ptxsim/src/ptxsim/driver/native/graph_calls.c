/* CUDA runtime API: building graphs node by node, querying and changing them. */
#include "graphs.h"
#include <stdlib.h>
#include <string.h>

typedef uintptr_t Word;

/* For calls that have an additional array of edge data in CUDA 13: an argument after it, in either version. */
static Word shifted(Word without, Word with) { return runtime_major() >= 13 ? with : without; }

static Node *instance(Graph *graph, const Node *origin) {
  Node *node = graph->first;
  while (node && node->origin != origin) node = node->next;
  return node;
}

/* ---- graphs ---- */

API Err cudaGraphCreate(void **graph, unsigned flags) { return (void)flags, *graph = new_graph(), note(OK); }
API Err cudaGraphDestroy(void *graph) { return (void)graph, note(OK); } /* instances point into it */
API Err cudaGraphExecDestroy(void *graph) { return (void)graph, note(OK); }
API Err cudaGraphClone(void **made, void *graph) {
  return *made = duplicate(graph), note(*made ? OK : INVALID_VALUE);
}

API Err cudaGraphInstantiate(void **made, void *graph) { return cudaGraphClone(made, graph); }
API Err cudaGraphInstantiateWithFlags(void **made, void *graph) { return cudaGraphClone(made, graph); }
API Err cudaGraphInstantiateWithParams(void **made, void *graph, void *params) {
  return memset((char *)params + 24, 0, 4), cudaGraphClone(made, graph); /* cudaGraphInstantiateSuccess */
}

API Err cudaGraphExecGetFlags(void *graph, uint64_t *flags) { return (void)graph, *flags = 0, note(OK); }
API Err cudaGraphUpload(void *graph, void *stream) { return (void)graph, (void)stream, note(OK); }

API Err cudaGraphExecUpdate(void *made, void *graph, void *result) {
  Graph *fresh = duplicate(graph);
  if (result) memset(result, 0, 4); /* cudaGraphExecUpdateSuccess */
  if (!fresh) return note(INVALID_VALUE);
  return *(Graph *)made = *fresh, note(OK);
}

/* ---- nodes ---- */

API Err cudaGraphAddKernelNode(void **node, void *graph, AFTER, const KernelParams *p) {
  return note(set_kernel(*node = add_node(graph, KERNEL_NODE, after, count), p));
}

API Err cudaGraphAddMemcpyNode(void **node, void *graph, AFTER, const Copy3D *p) {
  return note(set_copy3d(*node = add_node(graph, COPY_NODE, after, count), p));
}

API Err cudaGraphAddMemcpyNode1D(void **node, void *graph, AFTER, void *to, const void *from, size_t size) {
  return note(set_copy(*node = add_node(graph, COPY_NODE, after, count), to, from, size));
}

API Err cudaGraphAddMemcpyNodeToSymbol(void **node, void *graph, AFTER, const void *symbol, const void *from,
                                       size_t size, size_t offset) {
  void *to = NULL;
  Err error = variable_of(symbol, &to, NULL);
  return error ? note(error)
               : cudaGraphAddMemcpyNode1D(node, graph, after, count, (char *)to + offset, from, size);
}

API Err cudaGraphAddMemcpyNodeFromSymbol(void **node, void *graph, AFTER, void *to, const void *symbol,
                                         size_t size, size_t offset) {
  void *from = NULL;
  Err error = variable_of(symbol, &from, NULL);
  return error ? note(error)
               : cudaGraphAddMemcpyNode1D(node, graph, after, count, to, (char *)from + offset, size);
}

API Err cudaGraphAddMemsetNode(void **node, void *graph, AFTER, const FillParams *p) {
  return note(set_fill(*node = add_node(graph, FILL_NODE, after, count), p));
}

API Err cudaGraphAddHostNode(void **node, void *graph, AFTER, const HostParams *p) {
  return note(set_host(*node = add_node(graph, HOST_NODE, after, count), p));
}

API Err cudaGraphAddEmptyNode(void **node, void *graph, AFTER) {
  return *node = add_node(graph, EMPTY_NODE, after, count), note(OK);
}

API Err cudaGraphAddChildGraphNode(void **node, void *graph, AFTER, void *child) {
  Node *made = *node = add_node(graph, CHILD_NODE, after, count);
  return made->child = duplicate(child), note(made->child ? OK : INVALID_VALUE);
}

API Err cudaGraphAddEventRecordNode(void **node, void *graph, AFTER, void *event) {
  return ((Node *)(*node = add_node(graph, RECORD_NODE, after, count)))->event = event, note(OK);
}

API Err cudaGraphAddEventWaitNode(void **node, void *graph, AFTER, void *event) {
  return ((Node *)(*node = add_node(graph, WAIT_NODE, after, count)))->event = event, note(OK);
}

API Err cudaGraphAddMemAllocNode(void **node, void *graph, AFTER, AllocParams *p) {
  return note(set_memory(*node = add_node(graph, ALLOC_NODE, after, count), p));
}

API Err cudaGraphAddMemFreeNode(void **node, void *graph, AFTER, void *pointer) {
  return ((Node *)(*node = add_node(graph, FREE_NODE, after, count)))->memory.pointer = pointer, note(OK);
}

API Err cudaGraphAddNode_v2(void **node, void *graph, void *after, const void *edges, size_t count,
                            void *params) {
  int type = *(int *)params;
  void *p = (char *)params + 16, *content = *(void **)p;
  (void)edges;
  switch (type) {
    case KERNEL_NODE: return cudaGraphAddKernelNode(node, graph, after, count, p);
    case COPY_NODE: return cudaGraphAddMemcpyNode(node, graph, after, count, (Copy3D *)((char *)p + 16));
    case FILL_NODE: return cudaGraphAddMemsetNode(node, graph, after, count, p);
    case HOST_NODE: return cudaGraphAddHostNode(node, graph, after, count, p);
    case CHILD_NODE: return cudaGraphAddChildGraphNode(node, graph, after, count, content);
    case EMPTY_NODE: return cudaGraphAddEmptyNode(node, graph, after, count);
    case WAIT_NODE: return cudaGraphAddEventWaitNode(node, graph, after, count, content);
    case RECORD_NODE: return cudaGraphAddEventRecordNode(node, graph, after, count, content);
    case ALLOC_NODE: return cudaGraphAddMemAllocNode(node, graph, after, count, p);
    case FREE_NODE: return cudaGraphAddMemFreeNode(node, graph, after, count, content);
    default: complain("nodes of a graph of type %d are not modelled", type);
  }
  return note(NOT_SUPPORTED);
}

API Err cudaGraphAddNode(void **node, void *graph, void *after, Word a, Word b, Word c) {
  return cudaGraphAddNode_v2(node, graph, after, NULL, shifted(a, b), (void *)shifted(b, c));
}

static void forget(Node *node, const Node *before) {
  for (size_t i = 0; i < node->count; i++)
    if (node->after[i] == before) node->after[i--] = node->after[--node->count];
}

API Err cudaGraphDestroyNode(void *node) { /* becomes a node without work, which keeps its edges */
  return ((Node *)node)->type = EMPTY_NODE, note(OK);
}

/* ---- edges ---- */

API Err cudaGraphAddDependencies(void *graph, Node **from, Node **to, Word a, Word b) {
  (void)graph;
  for (size_t i = 0; i < shifted(a, b); i++) add_dependency(to[i], from[i]);
  return note(OK);
}

API Err cudaGraphRemoveDependencies(void *graph, Node **from, Node **to, Word a, Word b) {
  (void)graph;
  for (size_t i = 0; i < shifted(a, b); i++) forget(to[i], from[i]);
  return note(OK);
}

API Err cudaGraphGetEdges(Graph *graph, Node **from, Node **to, Word a, Word b) {
  size_t *count = (size_t *)shifted(a, b), found = 0;
  for (Node *at = graph->first; at; at = at->next)
    for (size_t i = 0; i < at->count; i++, found++)
      if (from && to && found < *count) from[found] = at->after[i], to[found] = at;
  return *count = found, note(OK);
}

API Err cudaGraphNodeGetDependencies(Node *node, Node **before, Word a, Word b) {
  size_t *count = (size_t *)shifted(a, b);
  for (size_t i = 0; before && i < node->count && i < *count; i++) before[i] = node->after[i];
  return *count = node->count, note(OK);
}

static Err listed(Graph *graph, int roots, Node **nodes, size_t *count) {
  size_t found = 0;
  for (Node *at = graph->first; at; at = at->next)
    if (!roots || !at->count) {
      if (nodes && found < *count) nodes[found] = at;
      found++;
    }
  return *count = found, note(OK);
}

API Err cudaGraphGetNodes(Graph *graph, Node **nodes, size_t *count) {
  return listed(graph, 0, nodes, count);
}
API Err cudaGraphGetRootNodes(Graph *graph, Node **nodes, size_t *count) {
  return listed(graph, 1, nodes, count);
}

/* ---- parameters of nodes ---- */

API Err cudaGraphNodeGetType(const Node *node, int *type) { return *type = node->type, note(OK); }
API Err cudaGraphNodeFindInClone(Node **found, const Node *node, Graph *clone) {
  return *found = instance(clone, node), note(*found ? OK : INVALID_VALUE);
}

API Err cudaGraphChildGraphNodeGetGraph(const Node *node, Graph **graph) {
  return *graph = node->child, note(OK);
}
API Err cudaGraphHostNodeGetParams(const Node *node, HostParams *p) {
  return *p = (HostParams){node->host.function, node->host.data}, note(OK);
}

API Err cudaGraphMemsetNodeGetParams(const Node *n, FillParams *p) {
  size_t element = n->fill.element;
  return *p = (FillParams){n->fill.to, n->fill.pitch,           n->fill.value,
                           element,    n->fill.width / element, n->fill.height},
         note(OK);
}

API Err cudaGraphMemAllocNodeGetParams(const Node *node, AllocParams *p) {
  memset(p, 0, sizeof *p);
  return p->size = node->memory.size, p->pointer = node->memory.pointer, note(OK);
}

API Err cudaGraphMemFreeNodeGetParams(const Node *node, void **pointer) {
  return *pointer = node->memory.pointer, note(OK);
}

API Err cudaGraphKernelNodeGetParams(const Node *node, KernelParams *p) {
  const Kernel *kernel = node->launch.kernel;
  const Shape *shape = &node->launch.shape;
  void **arguments = calloc(kernel->facts.parameters + 1, sizeof *arguments);
  for (uint64_t i = 0; i < kernel->facts.parameters; i++)
    arguments[i] = (char *)node->launch.block + kernel->offsets[i];
  *p = (KernelParams){(void *)kernel->host, shape->grid, shape->block, shape->shared, arguments, NULL};
  return note(OK);
}

API Err cudaGraphKernelNodeSetAttribute(Node *node, int number, const void *value) {
  Attribute it = {.id = number};
  memcpy(&it.value, value, sizeof it.value);
  return read_attributes(&node->launch.shape, &it, 1), note(OK);
}

API Err cudaGraphKernelNodeCopyAttributes(Node *to, const Node *from) {
  to->launch.shape.cluster = from->launch.shape.cluster;
  return to->launch.shape.cooperative = from->launch.shape.cooperative, note(OK);
}

/* CHANGE: defines `what` for a node of a graph and, under another name, for that node's copy in an instance. */
#define CHANGE(name, in_instance, Type, what)                    \
  API Err name(Node *node, Type p) { return note(what); }        \
  API Err in_instance(Graph *made, const Node *origin, Type p) { \
    Node *node = instance(made, origin);                         \
    return node ? note(what) : note(INVALID_VALUE);              \
  }

CHANGE(cudaGraphKernelNodeSetParams, cudaGraphExecKernelNodeSetParams, const KernelParams *,
       set_kernel(node, p))
CHANGE(cudaGraphMemcpyNodeSetParams, cudaGraphExecMemcpyNodeSetParams, const Copy3D *, set_copy3d(node, p))
CHANGE(cudaGraphMemsetNodeSetParams, cudaGraphExecMemsetNodeSetParams, const FillParams *, set_fill(node, p))
CHANGE(cudaGraphHostNodeSetParams, cudaGraphExecHostNodeSetParams, const HostParams *, set_host(node, p))
CHANGE(cudaGraphEventRecordNodeSetEvent, cudaGraphExecEventRecordNodeSetEvent, void *, (node->event = p, OK))
CHANGE(cudaGraphEventWaitNodeSetEvent, cudaGraphExecEventWaitNodeSetEvent, void *, (node->event = p, OK))

API Err cudaGraphMemcpyNodeSetParams1D(Node *node, void *to, const void *from, size_t size) {
  return note(set_copy(node, to, from, size));
}

API Err cudaGraphExecMemcpyNodeSetParams1D(Graph *made, Node *node, void *to, const void *from, size_t size) {
  return (node = instance(made, node)) ? note(set_copy(node, to, from, size)) : note(INVALID_VALUE);
}

API Err cudaGraphExecChildGraphNodeSetParams(Graph *made, Node *node, Graph *child) {
  node = instance(made, node);
  return note(node && (node->child = duplicate(child)) ? OK : INVALID_VALUE);
}

API Err cudaGraphNodeSetEnabled(Graph *made, Node *node, unsigned enabled) {
  node = instance(made, node);
  if (node) node->disabled = !enabled;
  return note(node ? OK : INVALID_VALUE);
}

API Err cudaGraphNodeGetEnabled(Graph *made, Node *node, unsigned *enabled) {
  node = instance(made, node);
  if (node) *enabled = !node->disabled;
  return note(node ? OK : INVALID_VALUE);
}

/* Memory of graphs: attributes of its pool, which is the arena. */
API Err cudaDeviceGetGraphMemAttribute(int device, int number, uint64_t *value) {
  return (void)device, (void)number, *value = 0, note(OK);
}

API Err cudaDeviceSetGraphMemAttribute(int device, int number, void *value) {
  return (void)device, (void)number, (void)value, note(OK);
}

API Err cudaDeviceGraphMemTrim(int device) { return (void)device, note(OK); }
