"""From a TIRX kernel to an artifact: TVM prints CUDA (`build`), NVRTC makes PTX and a cubin of it (`nvrtc`).

Only `build` and what it needs import TVM; `nvrtc` and `cache` work without it.
"""
