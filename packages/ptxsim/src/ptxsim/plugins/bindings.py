"""Answers the calls by which Python programs ask cuda.bindings about the device, for a simulated chip."""

from __future__ import annotations

from unittest import mock

from ptxsim.driver.chips import ChipProperties, attributes


def patches(chip: ChipProperties, **more) -> list:
    """Patches of cuda.bindings: functions of its driver and the device count of its runtime.

    more: further functions of the driver.
    """
    from cuda.bindings import driver, runtime

    ok, known = driver.CUresult.CUDA_SUCCESS, attributes(chip)
    answers = {
        "cuInit": lambda *_: (ok,),
        "cuDeviceGetCount": lambda: (ok, 1),
        "cuDeviceGet": lambda number: (ok, driver.CUdevice(number)),
        "cuDriverGetVersion": lambda: (ok, 13000),
        "cuCtxGetCurrent": lambda: (ok, driver.CUcontext(0)),
        "cuCtxCreate": lambda *_: (ok, driver.CUcontext(0)),
        **dict.fromkeys(["cuCtxSetCurrent", "cuCtxSynchronize", "cuStreamSynchronize"], lambda *_: (ok,)),
        "cuDeviceGetAttribute": lambda which, _: (ok, known.get(int(which), 0)),
        **more,
    }
    fine = runtime.cudaError_t.cudaSuccess
    nothing = ["cudaDeviceSynchronize", "cudaLibraryUnload", "cudaStreamSynchronize"]
    return [
        *(mock.patch.object(driver, name, answer) for name, answer in answers.items()),
        mock.patch.object(runtime, "cudaGetDeviceCount", lambda: (fine, 1)),
        *(mock.patch.object(runtime, name, lambda *_: (fine,)) for name in nothing),
    ]
