/* Memory: the simulator allocates from the arena; copies and fills happen here, where it is mapped. */
#define _GNU_SOURCE
#include "standin.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static Block *blocks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int in_arena(const void *pointer) { return (uint64_t)pointer - arena_base < arena_size; }

void remember_block(uint64_t address, size_t size, int kind) {
  Block *block = malloc(sizeof *block);
  pthread_mutex_lock(&lock);
  *block = (Block){address, size, kind, blocks};
  blocks = block;
  pthread_mutex_unlock(&lock);
}

Err allocate(void **pointer, size_t size, int kind) {
  uint64_t asked[2] = {size, kind}, address = 0;
  if (!pointer) return INVALID_VALUE;
  *pointer = NULL;
  if (!size) return OK;
  Err error = ask(ALLOC, asked, sizeof asked, &address, sizeof address);
  if (error) return error;
  remember_block(address, size, kind);
  *pointer = (void *)address;
  return OK;
}

Err release(void *pointer) {
  uint64_t address = (uint64_t)pointer;
  if (!pointer) return OK;
  pthread_mutex_lock(&lock);
  Block **at = &blocks;
  while (*at && (*at)->address != address) at = &(*at)->next;
  Block *found = *at;
  if (found) *at = found->next;
  pthread_mutex_unlock(&lock);
  free(found);
  return found ? ask(FREE, &address, sizeof address, NULL, 0) : INVALID_VALUE;
}

Block *block_of(const void *pointer) {
  pthread_mutex_lock(&lock);
  Block *at = blocks;
  while (at && (uint64_t)pointer - at->address >= at->size) at = at->next;
  pthread_mutex_unlock(&lock);
  return at;
}

/* Whether [pointer, pointer + size) is host memory or inside one allocation; if not, says so. */
static int reaches(const void *pointer, size_t size) {
  unsigned long long bytes = size;
  if (!pointer) return complain("error 1: %llu B to copy or fill at a null pointer", bytes), 0;
  if (!arena_base || !in_arena(pointer)) return 1;
  Block *block = block_of(pointer);
  if (!block) return complain("error 1: %llu B to copy or fill at %p, which is not allocated", bytes, pointer), 0;
  unsigned long long room = block->address + block->size - (uint64_t)pointer;
  if (bytes > room) complain("error 1: %llu B to copy or fill, but the allocation has %llu B there", bytes, room);
  return bytes <= room;
}

Err copy(void *to, const void *from, size_t size) {
  if (!size) return OK;
  if (!reaches(to, size) || !reaches(from, size)) return INVALID_VALUE;
  memmove(to, from, size);
  return OK;
}

Err copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height) {
  if (height > 1 && (to_pitch < width || from_pitch < width)) return INVALID_VALUE;
  Err error = OK;
  for (size_t row = 0; row < height && !error; row++)
    error = copy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
  return error;
}

/* ---- memory of the program itself: its pages become pages of the arena, with their contents ---- */

typedef struct Registered {
  char *start;
  size_t size, asked;
  void *at, *host;
  struct Registered *next;
} Registered;
static Registered *registered;

static Registered *registered_around(const char *start, const char *end) {
  Registered *it = registered;
  while (it && (end <= it->start || it->start + it->size <= start)) it = it->next;
  return it;
}

static Err note_registered(Registered those) {
  Registered *it = malloc(sizeof *it);
  if (!it) return OUT_OF_MEMORY;
  *it = those;
  registered = it;
  return OK;
}

Err register_host(void *pointer, size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *start = (char *)((uintptr_t)pointer & ~(page - 1));
  char *end = (char *)(((uintptr_t)pointer + size + page - 1) & ~(page - 1));
  void *at = NULL;
  if (!pointer || !size || device_pointer(pointer)) return INVALID_VALUE;
  Registered *around = registered_around(start, end);  // its pages are in the arena already
  if (around && (start < around->start || around->start + around->size < end)) {
    complain("host memory cannot be registered because a part of its pages already is");
    return NOT_SUPPORTED;
  }
  if (around)
    return note_registered((Registered){around->start, around->size, size, around->at, pointer, registered});
  Err error = allocate(&at, end - start, HOST);
  if (error) return error;
  memcpy(at, start, end - start);
  int file = open_arena();
  void *made = mmap(start, end - start, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                    (off_t)((uint64_t)at - arena_base));
  close(file);
  if (made != start) return NOT_SUPPORTED;
  return note_registered((Registered){start, (size_t)(end - start), size, at, pointer, registered});
}

/* Replaces pages of the arena by private pages again, in one step, because our own notes may be in them. */
static int take_back(const Registered *it) {
  Registered was = *it;
  void *own = mmap(NULL, was.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (own == MAP_FAILED) return 0;
  memcpy(own, was.at, was.size);
  return mremap(own, was.size, was.size, MREMAP_MAYMOVE | MREMAP_FIXED, was.start) == was.start;
}

Err unregister_host(void *pointer) {
  Registered **place = &registered;
  while (*place && (*place)->host != pointer) place = &(*place)->next;
  Registered *it = *place;
  if (!it) return INVALID_VALUE;
  *place = it->next;
  Err error = OK;
  if (!registered_around(it->start, it->start + it->size))
    error = take_back(it) ? release(it->at) : NOT_SUPPORTED;
  free(it);
  return error;
}

void *device_pointer(const void *host) {
  for (Registered *it = registered; it; it = it->next)
    if ((uintptr_t)((const char *)host - (char *)it->host) < it->asked)
      return (char *)it->at + ((const char *)host - it->start);
  return block_of(host) ? (void *)host : NULL;
}

static Err fill_row(char *to, unsigned value, size_t element, size_t width) {
  if (!in_arena(to) || !reaches(to, width)) return INVALID_VALUE;
  if (element == 1) memset(to, (int)value, width);
  else
    for (size_t at = 0; at + element <= width; at += element) memcpy(to + at, &value, element);
  return OK;
}

Err fill(void *to, size_t pitch, unsigned value, size_t element, size_t width, size_t height) {
  if (element != 1 && element != 2 && element != 4) return INVALID_VALUE;
  Err error = OK;
  for (size_t row = 0; width && row < height && !error; row++)
    error = fill_row((char *)to + row * pitch, value, element, width);
  return error;
}
