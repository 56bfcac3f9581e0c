/* Capture: work submitted to a stream is done at once, or added to the graph into which the stream is captured. */
#include "graphs.h"
#include <stdlib.h>

Err launch(Kernel *kernel, Shape shape, void **arguments, void **extra, void *stream) {
  void *block = NULL;
  Err error = sticky() ? sticky() : packed(kernel, &shape, arguments, extra, &block);
  if (error) return error;
  size_t size = kernel->facts.parameter_bytes;
  Graph *graph = capturing(stream);
  error =
      graph ? record_launch(graph, kernel, &shape, block, size) : launch_packed(kernel, &shape, block, size);
  free(block);
  return error;
}

API Err cudaLaunchHostFunc(void *stream, HostFunction function, void *data) {
  Graph *graph = capturing(stream);
  if (graph) return note(record_host(graph, function, data));
  function(data);
  return note(OK);
}

API Err cudaGraphLaunch(void *graph, void *stream) {
  Graph *outer = capturing(stream);
  if (outer) return add_node(outer, CHILD_NODE, NULL, 0)->child = duplicate(graph), note(OK);
  return note(play(graph));
}

API Err cudaStreamBeginCapture(void *stream, int mode) {
  (void)mode;
  return stream_of(stream)->capture = new_graph(), note(OK);
}

API Err cudaStreamBeginCaptureToGraph(void *stream, void *graph) {
  return stream_of(stream)->capture = graph, note(OK);
}

API Err cudaStreamUpdateCaptureDependencies(void) { return note(OK); } /* dependencies follow the order of capture */

API Err cudaStreamEndCapture(void *stream, void **graph) {
  Graph *ended = capturing(stream);
  if (ended) ended->ended = 1; /* seen by the streams that joined, too */
  return *graph = ended, note(ended ? OK : CAPTURE_INVALID);
}

API Err cudaStreamIsCapturing(void *stream, int *status) {
  return *status = capturing(stream) != NULL, note(OK);
}

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
