/* CUDA's error codes: names, texts, the last error of a thread, and errors that invalidate the context. */
#include "standin.h"

static __thread Err last;
static Err fatal; /* sticky error of the context after a faulting kernel */

static const struct {
  Err code;
  const char *name, *text;
} known[] = {
    {0, "cudaSuccess", "no error"},
    {1, "cudaErrorInvalidValue", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "out of memory"},
    {3, "cudaErrorInitializationError", "initialization error"},
    {9, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {13, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {98, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {200, "cudaErrorInvalidKernelImage", "device kernel image is invalid"},
    {209, "cudaErrorNoKernelImageForDevice", "no kernel image is available for execution on the device"},
    {218, "cudaErrorInvalidPtx", "a PTX JIT compilation failed"},
    {400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {500, "cudaErrorSymbolNotFound", "named symbol not found"},
    {600, "cudaErrorNotReady", "device not ready"},
    {700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {701, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
    {702, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {710, "cudaErrorAssert", "device-side assert triggered"},
    {715, "cudaErrorIllegalInstruction", "an illegal instruction was encountered"},
    {716, "cudaErrorMisalignedAddress", "misaligned address"},
    {719, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {720, "cudaErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"},
    {801, "cudaErrorNotSupported", "operation not supported"},
    {901, "cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"},
};

Err note(Err error) {
  int kills = error >= FIRST_STICKY && error <= LAST_STICKY && error != 701;
  if (kills && !fatal) fatal = error;
  if (fatal) error = fatal;
  if (error && error != NOT_READY) last = error;
  return error;
}

Err sticky(void) { return fatal; }
void forget_errors(void) { last = fatal = OK; }

API Err cudaGetLastError(void) {
  Err error = last;
  last = fatal;
  return error;
}

API Err cudaPeekAtLastError(void) { return last; }

const char *error_name(Err error) {
  for (size_t i = 0; i < COUNT(known); i++)
    if (known[i].code == error) return known[i].name;
  return "cudaErrorUnknown";
}

const char *error_text(Err error) {
  for (size_t i = 0; i < COUNT(known); i++)
    if (known[i].code == error) return known[i].text;
  return "unknown error";
}

API const char *cudaGetErrorString(Err error) { return error_text(error); }
API const char *cudaGetErrorName(Err error) { return error_name(error); }
