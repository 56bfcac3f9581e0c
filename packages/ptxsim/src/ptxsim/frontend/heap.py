"""malloc and free of CUDA C++ as PTX, for modules that call them: they take memory of a module variable,
whose first 16 bytes count the bytes taken and the calls of free. What is freed is not used again; if too
little is left for that reason, the run is incomplete. A launch keeps what the ones before left.
"""

SIZE = 8 << 20  # bytes, CUDA's default (cudaLimitMallocHeapSize)
FUNCTIONS = ("malloc", "free")
FULL = "ptxsim_heap_full"  # provided by the simulator itself
NAME = "ptxsim_heap"
TEXT = f""".version 8.0
.target sm_80
.address_size 64
.global .align 16 .b8 {NAME}[{SIZE}];
.extern .func {FULL}();
.func (.param .b64 result) malloc(.param .b64 bytes) {{
  .reg .b64 %n, %first, %used, %start, %end; .reg .pred %p;
  ld.param.b64 %n, [bytes]; mov.u64 %first, {NAME}; mov.u64 %start, 0;
  setp.gt.u64 %p, %n, {SIZE}; @%p bra END;
  add.u64 %n, %n, 15; and.b64 %n, %n, -16;
  atom.relaxed.gpu.global.add.u64 %used, [%first], %n; add.u64 %used, %used, 16; add.u64 %end, %n, %used;
  setp.gt.u64 %p, %end, {SIZE}; @%p bra TOO_MUCH;
  add.u64 %start, %first, %used; bra END;
TOO_MUCH: sub.u64 %n, 0, %n; red.relaxed.gpu.global.add.u64 [%first], %n;
  ld.relaxed.gpu.global.u64 %used, [%first+8]; setp.ne.u64 %p, %used, 0; @%p call {FULL};
END: st.param.b64 [result], %start; ret; }}
.func free(.param .b64 pointer) {{
  .reg .b64 %given, %first; .reg .pred %p;
  ld.param.b64 %given, [pointer]; mov.u64 %first, {NAME}; setp.ne.u64 %p, %given, 0;
  @%p red.relaxed.gpu.global.add.u64 [%first+8], 1; ret; }}
"""
