"""Stand-ins for the four headers that TVM includes in every kernel, although hardly any kernel uses them.

The real ones cost 0.7 s of each compilation in NVRTC and leave 115 KB of unused variables in the PTX. A
stand-in declares the names that TVM's prelude mentions. A kernel that uses more of a header does not compile
with the stand-ins, and nvrtc.py compiles it again with the real headers.
"""

_INTEGERS = """
namespace cuda { namespace std {
using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long;
} }
"""
_TRAITS = """
namespace cuda { namespace std {
template <class A, class B> struct is_same;
template <class A, class B> inline constexpr bool is_same_v = is_same<A, B>::value;
template <class A> struct is_integral;
template <class A> struct is_signed;
template <class A> struct is_unsigned;
template <class A> struct is_floating_point;
template <bool B, class T = void> struct enable_if;
template <bool B, class T, class F> struct conditional;
} }
"""
_GROUPS = """
namespace cooperative_groups {
struct thread_block {
  __device__ unsigned thread_rank() const {
    return threadIdx.z * blockDim.y * blockDim.x + threadIdx.y * blockDim.x + threadIdx.x;
  }
};
__device__ inline thread_block this_thread_block() { return {}; }
}
"""
HEADERS = {
    "cuda/barrier": "",
    "cooperative_groups.h": _GROUPS,
    "cuda/std/cstdint": _INTEGERS,
    "cuda/std/type_traits": _TRAITS,
}
