/* The socket to the simulator, and the arena of memory that both processes map. */
#define _GNU_SOURCE
#include "standin.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ATTRIBUTES = 160 };
typedef struct {
  uint32_t op, size;
} Head;
typedef struct {
  int32_t status;
  uint32_t size;
} Answer;
typedef struct {
  uint64_t base, size;
  int32_t attributes[ATTRIBUTES];
  char arena[256];
} Welcome;

uint64_t arena_base, arena_size;
static int socket_of_pid, descriptor = -1;
static Welcome welcome;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static int send_all(const void *data, size_t size) {
  for (const char *at = data; size;) {
    ssize_t sent = send(descriptor, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return -1;
    at += sent, size -= sent;
  }
  return 0;
}

static int receive_all(void *data, size_t size) {
  for (char *at = data; size;) {
    ssize_t got = recv(descriptor, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return -1;
    at += got, size -= got;
  }
  return 0;
}

static Err exchange(int op, const Part *parts, int count, void *reply, size_t room, size_t *got) {
  Head head = {op, 0};
  for (int i = 0; i < count; i++) head.size += parts[i].size;
  int failed = send_all(&head, sizeof head);
  for (int i = 0; i < count && !failed; i++) failed = send_all(parts[i].data, parts[i].size);
  Answer answer;
  if (failed || receive_all(&answer, sizeof answer)) return NO_DEVICE;
  size_t kept = answer.size < room ? answer.size : room;
  if (receive_all(reply, kept)) return NO_DEVICE;
  for (char rest[256]; kept < answer.size;) {
    size_t part = answer.size - kept < sizeof rest ? answer.size - kept : sizeof rest;
    if (receive_all(rest, part)) return NO_DEVICE;
    kept += part;
  }
  if (got) *got = answer.size;
  return answer.status;
}

static Err connect_once(void) {
  if (descriptor >= 0 && socket_of_pid == getpid()) return OK;
  const char *path = getenv("PTXSIM_SOCKET");
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (!path || strlen(path) >= sizeof address.sun_path) return NO_DEVICE;
  strcpy(address.sun_path, path);
  descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0 || connect(descriptor, (struct sockaddr *)&address, sizeof address)) return NO_DEVICE;
  socket_of_pid = getpid();
  int32_t pid = getpid();
  Part part = {&pid, sizeof pid};
  if (exchange(HELLO, &part, 1, &welcome, sizeof welcome, NULL)) return NO_DEVICE;
  if (arena_base) return OK; /* a child after fork: the mapping is inherited */
  int file = open(welcome.arena, O_RDWR | O_CLOEXEC);
  if (file < 0) return NO_DEVICE;
  void *wanted = (void *)welcome.base;
  void *mapped = mmap(wanted, welcome.size, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file, 0);
  close(file);
  if (mapped != wanted) return NO_DEVICE;
  arena_base = welcome.base, arena_size = welcome.size;
  return OK;
}

Err request(int op, const Part *parts, int count, void *reply, size_t room, size_t *got) {
  pthread_mutex_lock(&turn);
  Err error = connect_once();
  if (!error) error = exchange(op, parts, count, reply, room, got);
  pthread_mutex_unlock(&turn);
  return error;
}

Err ask(int op, const void *data, size_t size, void *reply, size_t room) {
  Part part = {data, size};
  return request(op, &part, 1, reply, room, NULL);
}

int attribute(int number) {
  pthread_mutex_lock(&turn);
  Err error = connect_once();
  pthread_mutex_unlock(&turn);
  return error || number < 0 || number >= ATTRIBUTES ? 0 : welcome.attributes[number];
}

int open_arena(void) { return open(welcome.arena, O_RDWR | O_CLOEXEC); }

void complain(const char *format, ...) {
  char text[512];
  va_list values;
  va_start(values, format);
  int size = vsnprintf(text, sizeof text, format, values);
  va_end(values);
  ask(COMPLAIN, text, size < (int)sizeof text ? size : (int)sizeof text - 1, NULL, 0);
}
