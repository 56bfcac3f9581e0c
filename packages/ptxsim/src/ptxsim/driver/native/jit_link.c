/* nvJitLink. Machine code could not run here, so the result is the PTX that was added. It reports a version that
    cannot yet link anything else than PTX at run time, so that programs do not try. */
#include "standin.h"
#include <stdlib.h>
#include <string.h>

enum { INVALID_INPUT = 3, PTX = 2 }; /* nvJitLinkResult, nvJitLinkInputType */
typedef struct {
  char *text;
  size_t size; /* including the NUL at the end */
} Link;

API int nvJitLinkVersion(unsigned *major, unsigned *minor) { return *major = 12, *minor = 2, 0; }

API int nvJitLinkCreate(Link **link, unsigned n, const char **options) {
  (void)n, (void)options;
  return *link = calloc(1, sizeof(Link)), 0;
}

API int nvJitLinkDestroy(Link **link) {
  free((*link)->text), free(*link);
  return *link = NULL, 0;
}

API int nvJitLinkAddData(Link *link, int type, const char *data, size_t size, const char *name) {
  if (type != PTX || link->text) {
    complain("nvJitLink: only one PTX text can be linked, not %s", name ? name : "more");
    return INVALID_INPUT;
  }
  link->text = strndup(data, size);
  return link->size = strlen(link->text) + 1, 0;
}

API int nvJitLinkAddFile(Link *link, int type, const char *name) {
  (void)type;
  return nvJitLinkAddData(link, 0, NULL, 0, name);
}

API int nvJitLinkComplete(Link *link) { return link->text ? 0 : INVALID_INPUT; }

static int size_of(Link *link, size_t *size) { return *size = link->size, 0; }
static int text_of(Link *link, void *out) { return memcpy(out, link->text, link->size), 0; }
static int no_size(Link *link, size_t *size) { return (void)link, *size = 0, 0; }
static int no_text(Link *link, char *out) { return (void)link, (void)out, 0; }

API int nvJitLinkGetLinkedCubinSize(Link *link, size_t *size) { return size_of(link, size); }
API int nvJitLinkGetLinkedCubin(Link *link, void *out) { return text_of(link, out); }
API int nvJitLinkGetLinkedPtxSize(Link *link, size_t *size) { return size_of(link, size); }
API int nvJitLinkGetLinkedPtx(Link *link, char *out) { return text_of(link, out); }
API int nvJitLinkGetErrorLogSize(Link *link, size_t *size) { return no_size(link, size); }
API int nvJitLinkGetErrorLog(Link *link, char *out) { return no_text(link, out); }
API int nvJitLinkGetInfoLogSize(Link *link, size_t *size) { return no_size(link, size); }
API int nvJitLinkGetInfoLog(Link *link, char *out) { return no_text(link, out); }
