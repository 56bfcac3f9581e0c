/* Streams and events. All work is done when its call returns, so they only record times and are always ready. */
#include "standin.h"
#include <stdlib.h>
#include <time.h>

enum { LEGACY = 1, PER_THREAD = 2 }; /* handles of the two default streams, besides NULL */
static Stream standard;
static uint64_t streams_made;

typedef struct {
  double at;
  int recorded;
  unsigned flags;
} Event;

Stream *stream_of(void *handle) { return (uintptr_t)handle <= PER_THREAD ? &standard : handle; }

Graph *capturing(void *stream) {
  Graph *graph = stream_of(stream)->capture;
  return graph && !graph->ended ? graph : NULL;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

API Err cudaStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
  Stream *made = calloc(1, sizeof *made);
  made->flags = flags, made->priority = priority, made->id = ++streams_made;
  *stream = made;
  return note(OK);
}

API Err cudaStreamCreateWithFlags(void **s, unsigned flags) {
  return cudaStreamCreateWithPriority(s, flags, 0);
}
API Err cudaStreamCreate(void **s) { return cudaStreamCreateWithPriority(s, 0, 0); }

API Err cudaStreamDestroy(void *stream) {
  if ((uintptr_t)stream > PER_THREAD) free(stream);
  return note(OK);
}

API Err cudaStreamSynchronize(void *stream) { return note(capturing(stream) ? CAPTURE_INVALID : OK); }

API Err cudaStreamQuery(void *stream) { return cudaStreamSynchronize(stream); }
API Err cudaStreamGetFlags(void *stream, unsigned *flags) {
  return *flags = stream_of(stream)->flags, note(OK);
}
API Err cudaStreamGetPriority(void *stream, int *p) { return *p = stream_of(stream)->priority, note(OK); }
API Err cudaStreamGetId(void *stream, uint64_t *id) { return *id = stream_of(stream)->id, note(OK); }

API Err cudaStreamGetDevice(void *stream, int *device) {
  (void)stream;
  return *device = 0, note(OK);
}

/* A stream that waits for an event recorded in a captured stream joins the capture. */
API Err cudaStreamWaitEvent(void *stream, void *event, unsigned flags) {
  (void)flags;
  if (event && ((Event *)event)->recorded < 0) stream_of(stream)->capture = *(Graph **)((Event *)event + 1);
  return note(OK);
}

API Err cudaEventCreateWithFlags(void **event, unsigned flags) {
  Event *made = calloc(1, sizeof *made + sizeof(Graph *));
  made->flags = flags;
  *event = made;
  return note(OK);
}

API Err cudaEventCreate(void **event) { return cudaEventCreateWithFlags(event, 0); }

API Err cudaEventRecordWithFlags(void *event, void *stream, unsigned flags) {
  Event *it = event;
  (void)flags;
  if (!it) return note(INVALID_HANDLE);
  Graph *graph = capturing(stream);
  it->at = seconds(), it->recorded = graph ? -1 : 1;
  *(Graph **)(it + 1) = graph;
  return note(OK);
}

API Err cudaEventRecord(void *event, void *stream) { return cudaEventRecordWithFlags(event, stream, 0); }
API Err cudaEventQuery(void *event) { return note(event ? OK : INVALID_HANDLE); }
API Err cudaEventSynchronize(void *event) { return note(event ? OK : INVALID_HANDLE); }

API Err cudaEventDestroy(void *event) {
  free(event);
  return note(OK);
}

API Err cudaEventElapsedTime(float *milliseconds, void *start, void *end) {
  Event *first = start, *last = end;
  if (!first || !last || !first->recorded || !last->recorded) return note(INVALID_HANDLE);
  if ((first->flags | last->flags) & 2) return note(INVALID_HANDLE); /* made without timing */
  double elapsed = 1e3 * (last->at - first->at);
  *milliseconds = (float)(elapsed > 1e-3 ? elapsed : 1e-3);
  return note(OK);
}

API Err cudaEventElapsedTime_v2(float *ms, void *start, void *end) {
  return cudaEventElapsedTime(ms, start, end);
}

API Err cudaStreamAddCallback(void *stream, void (*call)(void *, Err, void *), void *data, unsigned flags) {
  (void)flags;
  call(stream, OK, data);
  return note(OK);
}
