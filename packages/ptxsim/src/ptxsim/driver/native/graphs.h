/* Graphs: declarations shared by graphs.c (nodes, order), capture.c (graphs from streams) and graph_calls.c
   (queries and changes). */
#ifndef PTXSIM_GRAPHS_H
#define PTXSIM_GRAPHS_H

#include "standin.h"

/* the numbers of cudaGraphNodeType */
typedef enum {
  KERNEL_NODE = 0,
  COPY_NODE = 1,
  FILL_NODE = 2,
  HOST_NODE = 3,
  CHILD_NODE = 4,
  EMPTY_NODE = 5,
  WAIT_NODE = 6,
  RECORD_NODE = 7,
  ALLOC_NODE = 10,
  FREE_NODE = 11
} NodeType;

typedef struct Node {
  NodeType type;
  int disabled, placed;
  struct Node *origin; /* in the graph that was instantiated */
  struct Node *copied; /* while it is being copied */
  struct Node **after; /* nodes that must be done before it */
  size_t count;
  union {
    struct {
      Kernel *kernel;
      Shape shape;
      void *block;
      size_t size;
    } launch;
    struct {
      void *to;
      const void *from;
      size_t to_pitch, from_pitch, width, height;
    } copy;
    struct {
      void *to;
      size_t pitch, element, width, height;
      unsigned value;
    } fill;
    struct {
      HostFunction function;
      void *data;
    } host;
    struct {
      void *pointer;
      size_t size;
    } memory;
    void *event;
    Graph *child;
  };
  struct Node *next;
} Node;

typedef struct {
  void *function;
  Dim3 grid, block;
  unsigned shared;
  void **arguments, **extra;
} KernelParams;
typedef struct {
  void *to;
  size_t pitch;
  unsigned value, element;
  size_t width, height;
} FillParams;
typedef struct {
  HostFunction function;
  void *data;
} HostParams;
typedef struct {
  char pool_and_access[104];
  size_t size;
  void *pointer;
} AllocParams;

#define AFTER void *after, size_t count /* the nodes that must be done before a new one */
Node *add_node(Graph *graph, NodeType type, AFTER);
void add_dependency(Node *node, Node *before);
Graph *duplicate(Graph *graph);
Err play(const Graph *graph);
Err set_kernel(Node *node, const KernelParams *p);
Err set_copy3d(Node *node, const Copy3D *p);
Err set_copy(Node *node, void *to, const void *from, size_t size);
Err set_fill(Node *node, const FillParams *p);
Err set_host(Node *node, const HostParams *p);
Err set_memory(Node *node, AllocParams *p);

#endif
