"""From a TIRX kernel to an artifact: TVM writes CUDA (`build`), NVRTC compiles it to PTX and cubin (`nvrtc`).

Only `build` and the modules that it needs import TVM; `nvrtc` and `cache` work without it.
"""
