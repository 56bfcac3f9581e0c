/* Functions of the CUDA runtime and driver that are not modelled: each says so once and returns NOT_SUPPORTED.

   Without them, the function of a linked runtime would run and need a real driver. */
#include "standin.h"

static Err not_modelled(const char *name) {
  complain("%s is not modelled: it gives error 801 (not supported)", name);
  return note(NOT_SUPPORTED);
}

/* clang-format off */
#define RUNTIME(X) \
  X(cudaArrayGetInfo) X(cudaArrayGetMemoryRequirements) X(cudaArrayGetPlane) \
  X(cudaArrayGetSparseProperties) X(cudaCreateSurfaceObject) X(cudaCreateTextureObject) \
  X(cudaDestroyExternalMemory) X(cudaDestroyExternalSemaphore) X(cudaDestroySurfaceObject) \
  X(cudaDestroyTextureObject) X(cudaDeviceFlushGPUDirectRDMAWrites) \
  X(cudaDeviceGetHostAtomicCapabilities) X(cudaDeviceGetNvSciSyncAttributes) \
  X(cudaDeviceGetP2PAtomicCapabilities) X(cudaDeviceGetTexture1DLinearMaxWidth) \
  X(cudaDeviceRegisterAsyncNotification) X(cudaDeviceUnregisterAsyncNotification) \
  X(cudaExternalMemoryGetMappedBuffer) X(cudaExternalMemoryGetMappedMipmappedArray) X(cudaFreeArray) \
  X(cudaFreeMipmappedArray) X(cudaFuncGetParamInfo) X(cudaGetChannelDesc) X(cudaGetMipmappedArrayLevel) \
  X(cudaGetSurfaceObjectResourceDesc) X(cudaGetTextureObjectResourceDesc) \
  X(cudaGetTextureObjectResourceViewDesc) X(cudaGetTextureObjectTextureDesc) \
  X(cudaGraphAddExternalSemaphoresSignalNode) X(cudaGraphAddExternalSemaphoresWaitNode) \
  X(cudaGraphConditionalHandleCreate) X(cudaGraphDebugDotPrint) X(cudaGraphEventRecordNodeGetEvent) \
  X(cudaGraphEventWaitNodeGetEvent) X(cudaGraphExecExternalSemaphoresSignalNodeSetParams) \
  X(cudaGraphExecExternalSemaphoresWaitNodeSetParams) X(cudaGraphExecMemcpyNodeSetParamsFromSymbol) \
  X(cudaGraphExecMemcpyNodeSetParamsToSymbol) X(cudaGraphExecNodeSetParams) \
  X(cudaGraphExternalSemaphoresSignalNodeGetParams) X(cudaGraphExternalSemaphoresSignalNodeSetParams) \
  X(cudaGraphExternalSemaphoresWaitNodeGetParams) X(cudaGraphExternalSemaphoresWaitNodeSetParams) \
  X(cudaGraphKernelNodeGetAttribute) X(cudaGraphMemcpyNodeGetParams) \
  X(cudaGraphMemcpyNodeSetParamsFromSymbol) X(cudaGraphMemcpyNodeSetParamsToSymbol) \
  X(cudaGraphNodeGetDependentNodes) X(cudaGraphNodeSetParams) X(cudaGraphReleaseUserObject) \
  X(cudaGraphRetainUserObject) X(cudaGraphicsMapResources) \
  X(cudaGraphicsResourceGetMappedMipmappedArray) X(cudaGraphicsResourceGetMappedPointer) \
  X(cudaGraphicsResourceSetMapFlags) X(cudaGraphicsSubResourceGetMappedArray) \
  X(cudaGraphicsUnmapResources) X(cudaGraphicsUnregisterResource) X(cudaImportExternalMemory) \
  X(cudaImportExternalSemaphore) X(cudaIpcCloseMemHandle) X(cudaIpcGetEventHandle) \
  X(cudaIpcGetMemHandle) X(cudaIpcOpenEventHandle) X(cudaIpcOpenMemHandle) \
  X(cudaLibraryEnumerateKernels) X(cudaLibraryGetKernelCount) X(cudaLibraryGetUnifiedFunction) \
  X(cudaLogsCurrent) X(cudaLogsDumpToFile) X(cudaLogsDumpToMemory) X(cudaLogsRegisterCallback) \
  X(cudaLogsUnregisterCallback) X(cudaMalloc3DArray) X(cudaMallocArray) X(cudaMallocMipmappedArray) \
  X(cudaMemDiscardAndPrefetchBatchAsync) X(cudaMemDiscardBatchAsync) X(cudaMemGetDefaultMemPool) \
  X(cudaMemGetMemPool) X(cudaMemPoolExportPointer) X(cudaMemPoolExportToShareableHandle) \
  X(cudaMemPoolImportFromShareableHandle) X(cudaMemPoolImportPointer) X(cudaMemPrefetchBatchAsync) \
  X(cudaMemRangeGetAttributes) X(cudaMemSetMemPool) X(cudaMemcpy2DArrayToArray) X(cudaMemcpy2DFromArray) \
  X(cudaMemcpy2DFromArrayAsync) X(cudaMemcpy2DToArray) X(cudaMemcpy2DToArrayAsync) \
  X(cudaMemcpy3DBatchAsync) X(cudaMemcpy3DPeer) X(cudaMemcpy3DPeerAsync) X(cudaMemcpyArrayToArray) \
  X(cudaMemcpyBatchAsync) X(cudaMemcpyFromArray) X(cudaMemcpyFromArrayAsync) X(cudaMemcpyToArray) \
  X(cudaMemcpyToArrayAsync) X(cudaMipmappedArrayGetMemoryRequirements) \
  X(cudaMipmappedArrayGetSparseProperties) X(cudaSignalExternalSemaphoresAsync) X(cudaUserObjectCreate) \
  X(cudaUserObjectRelease) X(cudaUserObjectRetain) X(cudaWaitExternalSemaphoresAsync)

#define DRIVER(X) \
  X(cuArray3DCreate) X(cuArray3DGetDescriptor) X(cuArrayCreate) X(cuArrayDestroy) \
  X(cuArrayGetDescriptor) X(cuArrayGetMemoryRequirements) X(cuArrayGetPlane) \
  X(cuArrayGetSparseProperties) X(cuCheckpointProcessCheckpoint) \
  X(cuCheckpointProcessGetRestoreThreadId) X(cuCheckpointProcessGetState) X(cuCheckpointProcessLock) \
  X(cuCheckpointProcessRestore) X(cuCheckpointProcessUnlock) X(cuCoredumpGetAttribute) \
  X(cuCoredumpGetAttributeGlobal) X(cuCoredumpSetAttribute) X(cuCoredumpSetAttributeGlobal) \
  X(cuCtxAttach) X(cuCtxDetach) X(cuCtxDisablePeerAccess) X(cuCtxEnablePeerAccess) X(cuCtxFromGreenCtx) \
  X(cuCtxGetCacheConfig) X(cuCtxGetDevResource) X(cuCtxGetExecAffinity) X(cuCtxGetId) \
  X(cuCtxGetSharedMemConfig) X(cuCtxRecordEvent) \
  X(cuCtxWaitEvent) X(cuDestroyExternalMemory) X(cuDestroyExternalSemaphore) \
  X(cuDevResourceGenerateDesc) X(cuDevSmResourceSplitByCount) \
  X(cuDeviceGetByPCIBusId) X(cuDeviceGetDevResource) X(cuDeviceGetExecAffinitySupport) \
  X(cuDeviceGetGraphMemAttribute) X(cuDeviceGetHostAtomicCapabilities) X(cuDeviceGetLuid) \
  X(cuDeviceGetNvSciSyncAttributes) X(cuDeviceGetP2PAtomicCapabilities) X(cuDeviceGetP2PAttribute) \
  X(cuDeviceGetProperties) X(cuDeviceGetTexture1DLinearMaxWidth) \
  X(cuDeviceGraphMemTrim) X(cuDeviceRegisterAsyncNotification) X(cuDeviceSetGraphMemAttribute) \
  X(cuDeviceSetMemPool) X(cuDeviceUnregisterAsyncNotification) \
  X(cuExternalMemoryGetMappedBuffer) X(cuExternalMemoryGetMappedMipmappedArray) \
  X(cuFlushGPUDirectRDMAWrites) X(cuFuncSetBlockShape) X(cuFuncSetSharedSize) \
  X(cuGraphAddBatchMemOpNode) X(cuGraphAddDependencies) X(cuGraphAddEventRecordNode) \
  X(cuGraphAddEventWaitNode) X(cuGraphAddExternalSemaphoresSignalNode) \
  X(cuGraphAddExternalSemaphoresWaitNode) X(cuGraphAddMemAllocNode) X(cuGraphAddMemFreeNode) \
  X(cuGraphAddMemcpyNode) X(cuGraphAddNode) X(cuGraphBatchMemOpNodeGetParams) \
  X(cuGraphBatchMemOpNodeSetParams) X(cuGraphChildGraphNodeGetGraph) X(cuGraphConditionalHandleCreate) \
  X(cuGraphDebugDotPrint) X(cuGraphDestroyNode) X(cuGraphEventRecordNodeGetEvent) \
  X(cuGraphEventRecordNodeSetEvent) X(cuGraphEventWaitNodeGetEvent) X(cuGraphEventWaitNodeSetEvent) \
  X(cuGraphExecBatchMemOpNodeSetParams) X(cuGraphExecChildGraphNodeSetParams) \
  X(cuGraphExecEventRecordNodeSetEvent) X(cuGraphExecEventWaitNodeSetEvent) \
  X(cuGraphExecExternalSemaphoresSignalNodeSetParams) X(cuGraphExecExternalSemaphoresWaitNodeSetParams) \
  X(cuGraphExecGetFlags) X(cuGraphExecHostNodeSetParams) X(cuGraphExecMemcpyNodeSetParams) \
  X(cuGraphExecMemsetNodeSetParams) X(cuGraphExecNodeSetParams) \
  X(cuGraphExternalSemaphoresSignalNodeGetParams) X(cuGraphExternalSemaphoresSignalNodeSetParams) \
  X(cuGraphExternalSemaphoresWaitNodeGetParams) X(cuGraphExternalSemaphoresWaitNodeSetParams) \
  X(cuGraphGetEdges) X(cuGraphGetRootNodes) X(cuGraphHostNodeGetParams) X(cuGraphHostNodeSetParams) \
  X(cuGraphInstantiate_v2) X(cuGraphKernelNodeCopyAttributes) X(cuGraphKernelNodeGetAttribute) \
  X(cuGraphKernelNodeGetParams) X(cuGraphKernelNodeSetAttribute) X(cuGraphKernelNodeSetParams) \
  X(cuGraphMemAllocNodeGetParams) X(cuGraphMemFreeNodeGetParams) X(cuGraphMemcpyNodeGetParams) \
  X(cuGraphMemcpyNodeSetParams) X(cuGraphMemsetNodeGetParams) X(cuGraphMemsetNodeSetParams) \
  X(cuGraphNodeFindInClone) X(cuGraphNodeGetDependencies) X(cuGraphNodeGetDependentNodes) \
  X(cuGraphNodeGetEnabled) X(cuGraphNodeGetType) X(cuGraphNodeSetEnabled) X(cuGraphNodeSetParams) \
  X(cuGraphReleaseUserObject) X(cuGraphRemoveDependencies) X(cuGraphRetainUserObject) \
  X(cuGraphicsMapResources) X(cuGraphicsResourceGetMappedMipmappedArray) \
  X(cuGraphicsResourceGetMappedPointer) X(cuGraphicsResourceSetMapFlags) \
  X(cuGraphicsSubResourceGetMappedArray) X(cuGraphicsUnmapResources) X(cuGraphicsUnregisterResource) \
  X(cuGreenCtxCreate) X(cuGreenCtxDestroy) X(cuGreenCtxGetDevResource) X(cuGreenCtxGetId) \
  X(cuGreenCtxRecordEvent) X(cuGreenCtxStreamCreate) X(cuGreenCtxWaitEvent) X(cuImportExternalMemory) \
  X(cuImportExternalSemaphore) X(cuIpcCloseMemHandle) X(cuIpcGetEventHandle) X(cuIpcGetMemHandle) \
  X(cuIpcOpenEventHandle) X(cuIpcOpenMemHandle) X(cuLaunch) X(cuLaunchCooperativeKernelMultiDevice) \
  X(cuLaunchGrid) X(cuLaunchGridAsync) X(cuLibraryEnumerateKernels) X(cuLibraryGetKernelCount) \
  X(cuLibraryGetUnifiedFunction) X(cuLinkAddFile) X(cuLogsCurrent) X(cuLogsDumpToFile) \
  X(cuLogsDumpToMemory) X(cuLogsRegisterCallback) X(cuLogsUnregisterCallback) X(cuMemAddressFree) \
  X(cuMemAddressReserve) X(cuMemBatchDecompressAsync) X(cuMemCreate) \
  X(cuMemDiscardAndPrefetchBatchAsync) X(cuMemDiscardBatchAsync) X(cuMemExportToShareableHandle) \
  X(cuMemGetAccess) X(cuMemGetAllocationGranularity) X(cuMemGetAllocationPropertiesFromHandle) \
  X(cuMemGetDefaultMemPool) X(cuMemGetHandleForAddressRange) X(cuMemGetMemPool) \
  X(cuMemImportFromShareableHandle) X(cuMemMap) X(cuMemMapArrayAsync) \
  X(cuMemPoolExportPointer) X(cuMemPoolExportToShareableHandle) \
  X(cuMemPoolImportFromShareableHandle) X(cuMemPoolImportPointer) \
  X(cuMemPrefetchBatchAsync) \
  X(cuMemRangeGetAttributes) X(cuMemRelease) X(cuMemRetainAllocationHandle) X(cuMemSetAccess) \
  X(cuMemSetMemPool) X(cuMemUnmap) X(cuMemcpy3DAsync_v2) X(cuMemcpy3DBatchAsync_v2) X(cuMemcpy3DPeer) \
  X(cuMemcpy3DPeerAsync) X(cuMemcpy3D_v2) X(cuMemcpyAtoA_v2) X(cuMemcpyAtoD_v2) X(cuMemcpyAtoHAsync_v2) \
  X(cuMemcpyAtoH_v2) X(cuMemcpyBatchAsync_v2) X(cuMemcpyDtoA_v2) X(cuMemcpyHtoAAsync_v2) \
  X(cuMemcpyHtoA_v2) \
  X(cuMipmappedArrayCreate) X(cuMipmappedArrayDestroy) X(cuMipmappedArrayGetLevel) \
  X(cuMipmappedArrayGetMemoryRequirements) X(cuMipmappedArrayGetSparseProperties) \
  X(cuModuleEnumerateFunctions) X(cuModuleGetFunctionCount) X(cuModuleGetSurfRef) X(cuModuleGetTexRef) \
  X(cuMulticastAddDevice) X(cuMulticastBindAddr) X(cuMulticastBindMem) X(cuMulticastCreate) \
  X(cuMulticastGetGranularity) X(cuMulticastUnbind) \
  \
  X(cuParamSetSize) X(cuParamSetTexRef) X(cuParamSetf) \
  X(cuParamSeti) X(cuParamSetv) X(cuPointerSetAttribute) X(cuSignalExternalSemaphoresAsync) \
  X(cuStreamBatchMemOp_v2) \
  X(cuStreamBeginCaptureToGraph) \
  X(cuStreamGetCaptureInfo_v3) X(cuStreamGetGreenCtx) \
  \
  X(cuStreamUpdateCaptureDependencies_v2) X(cuStreamWaitValue32_v2) X(cuStreamWaitValue64_v2) \
  X(cuStreamWriteValue32_v2) X(cuStreamWriteValue64_v2) X(cuSurfObjectCreate) X(cuSurfObjectDestroy) \
  X(cuSurfObjectGetResourceDesc) X(cuSurfRefGetArray) X(cuSurfRefSetArray) X(cuTexObjectCreate) \
  X(cuTexObjectDestroy) X(cuTexObjectGetResourceDesc) X(cuTexObjectGetResourceViewDesc) \
  X(cuTexObjectGetTextureDesc) X(cuTexRefCreate) X(cuTexRefDestroy) X(cuTexRefGetAddress) \
  X(cuTexRefGetAddressMode) X(cuTexRefGetArray) X(cuTexRefGetBorderColor) X(cuTexRefGetFilterMode) \
  X(cuTexRefGetFlags) X(cuTexRefGetFormat) X(cuTexRefGetMaxAnisotropy) X(cuTexRefGetMipmapFilterMode) \
  X(cuTexRefGetMipmapLevelBias) X(cuTexRefGetMipmapLevelClamp) X(cuTexRefGetMipmappedArray) \
  X(cuTexRefSetAddress) X(cuTexRefSetAddress2D_v2) X(cuTexRefSetAddressMode) X(cuTexRefSetArray) \
  X(cuTexRefSetBorderColor) X(cuTexRefSetFilterMode) X(cuTexRefSetFlags) X(cuTexRefSetFormat) \
  X(cuTexRefSetMaxAnisotropy) X(cuTexRefSetMipmapFilterMode) X(cuTexRefSetMipmapLevelBias) \
  X(cuTexRefSetMipmapLevelClamp) X(cuTexRefSetMipmappedArray) X(cuUserObjectCreate) \
  X(cuUserObjectRelease) X(cuUserObjectRetain) X(cuWaitExternalSemaphoresAsync)
/* clang-format on */

#define X(name) \
  API Err name(void) { return not_modelled(#name); }
RUNTIME(X)
DRIVER(X)
