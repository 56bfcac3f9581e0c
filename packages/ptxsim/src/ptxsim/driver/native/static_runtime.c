/* Replaces a CUDA runtime that is linked into the program, or into a library that it loads later: finds its
   functions in the symbol table of the file, and overwrites the start of each with a jump to the function here.
   A stripped file has no such table. */
#define _GNU_SOURCE
#include "standin.h"
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { JUMP = 14 };
static void write_jump(unsigned char *at, uint64_t target) { /* jmp *0(%rip), and the address */
  memcpy(at, "\xff\x25\0\0\0\0", 6);
  memcpy(at + 6, &target, 8);
}
#elif defined(__aarch64__)
enum { JUMP = 16 };
static void write_jump(unsigned char *at, uint64_t target) { /* ldr x16, .+8; br x16; the address */
  const uint32_t code[] = {0x58000050, 0xd61f0200};
  memcpy(at, code, 8);
  memcpy(at + 8, &target, 8);
}
#endif

int runtime_major(void) {
  const char *told = getenv("PTXSIM_CUDART");
  return told && atoi(told) > 0 ? atoi(told) : 13;
}

static void redirect(unsigned char *function, const char *name) {
  void *target = entry_point(name);
  long page = sysconf(_SC_PAGESIZE);
  if (!target || target == function) return;
  unsigned char *start = (unsigned char *)((uintptr_t)function & ~(uintptr_t)(page - 1));
  size_t size = function + JUMP - start;
  if (mprotect(start, size, PROT_READ | PROT_WRITE | PROT_EXEC)) return;
  write_jump(function, (uint64_t)target);
  mprotect(start, size, PROT_READ | PROT_EXEC);
  __builtin___clear_cache((char *)function, (char *)function + JUMP);
}

static void read_symbols(const unsigned char *file, size_t size, uintptr_t base) {
  const Elf64_Ehdr *head = (const void *)file;
  if (size < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) || head->e_shoff >= size) return;
  const Elf64_Shdr *sections = (const void *)(file + head->e_shoff);
  for (int i = 0; i < head->e_shnum; i++) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const Elf64_Sym *symbol = (const void *)(file + sections[i].sh_offset);
    const char *names = (const char *)file + sections[sections[i].sh_link].sh_offset;
    for (size_t left = sections[i].sh_size / sizeof *symbol; left--; symbol++) {
      const char *name = names + symbol->st_name;
      int runtime = !strncmp(name, "cuda", 4) || !strncmp(name, "__cuda", 6);
      if (runtime && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_value &&
          symbol->st_size >= JUMP)
        redirect((unsigned char *)base + symbol->st_value, name);
    }
  }
}

static int known(uintptr_t base) { /* whether the object at this address has been visited */
  static uintptr_t *seen;
  static size_t count;
  for (size_t k = 0; k < count; k++)
    if (seen[k] == base) return 1;
  uintptr_t *more = realloc(seen, (count + 1) * sizeof *seen);
  if (more) seen = more, seen[count++] = base;
  return 0;
}

static int visit(struct dl_phdr_info *object, size_t size, void *unused) {
  (void)size, (void)unused;
  if (known(object->dlpi_addr)) return 0;
  const char *path = object->dlpi_name[0] ? object->dlpi_name : "/proc/self/exe";
  struct stat facts;
  if (strstr(path, "libcuda") || strstr(path, "libc.so") || strstr(path, "ld-linux")) return 0;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  if (!fstat(file, &facts)) {
    void *mapped = mmap(NULL, facts.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapped != MAP_FAILED) {
      read_symbols(mapped, facts.st_size, object->dlpi_addr);
      munmap(mapped, facts.st_size);
    }
  }
  close(file);
  return 0;
}

static void visit_new(void) {
  static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
  if (!getenv("PTXSIM_SOCKET")) return;
  pthread_mutex_lock(&one);
  dl_iterate_phdr(visit, NULL);
  pthread_mutex_unlock(&one);
}

__attribute__((constructor)) static void replace_static_runtimes(void) { visit_new(); }

/* ---- libraries that are loaded later ---- */

typedef void *Open(const char *, int);

/* A name without a folder is searched for in the RUNPATH of the caller. */
static void *opened(Open *real, const char *file, int flags, const void *caller) {
  Dl_info its;
  Dl_serinfo size, *paths;
  void *found = NULL, *self = NULL;
  if (file && !strchr(file, '/') && dladdr(caller, &its)) {
    self = real(its.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!self) self = real(NULL, RTLD_LAZY); /* the program itself */
  }
  if (self && !real(file, RTLD_LAZY | RTLD_NOLOAD) && !dlinfo(self, RTLD_DI_SERINFOSIZE, &size) &&
      (paths = malloc(size.dls_size))) {
    *paths = size;
    if (!dlinfo(self, RTLD_DI_SERINFO, paths))
      for (unsigned k = 0; k < paths->dls_cnt && !found; k++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", paths->dls_serpath[k].dls_name, file);
        if (!access(path, R_OK)) found = real(path, flags);
      }
    free(paths);
  }
  return found ? found : real(file, flags);
}

API void *dlopen(const char *file, int flags) {
  static Open *real;
  if (!real) real = (Open *)dlsym(RTLD_NEXT, "dlopen");
  void *found = opened(real, file, flags, __builtin_return_address(0));
  if (found && !(flags & RTLD_NOLOAD)) visit_new();
  return found;
}
