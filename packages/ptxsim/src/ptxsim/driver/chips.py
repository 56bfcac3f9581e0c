"""What the driver and the runtime report about a chip: attributes by number, and the struct cudaDeviceProp.

Sources: CUDA C++ programming guide (technical specifications per compute capability), NVIDIA's data sheets.
Clock rates are 0, because the simulator has no clock.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

KB, GB = 1024, 1 << 30
ATTRIBUTES = 160


@dataclass(frozen=True)
class ChipProperties:
    name: str
    major: int
    minor: int
    sms: int
    memory: int  # bytes
    shared_per_sm: int  # bytes
    l2: int  # bytes
    cluster: bool
    threads_per_sm: int = 2048
    ctas_per_sm: int = 32

    @property
    def shared_per_cta(self) -> int:
        return self.shared_per_sm - KB

    @property
    def capability(self) -> int:
        return 10 * self.major + self.minor


CHIPS = {
    "a100": ChipProperties("NVIDIA A100 (ptxsim)", 8, 0, 108, 80 * GB, 164 * KB, 40 << 20, False),
    "h200": ChipProperties("NVIDIA H200 (ptxsim)", 9, 0, 132, 141 * GB, 228 * KB, 50 << 20, True),
    "b200": ChipProperties("NVIDIA B200 (ptxsim)", 10, 0, 148, 180 * GB, 228 * KB, 126 << 20, True),
    "rtx5090": ChipProperties(
        "NVIDIA GeForce RTX 5090 (ptxsim)", 12, 0, 170, 32 * GB, 100 * KB, 96 << 20, True, 1536, 24
    ),
}


def attributes(chip: ChipProperties) -> dict[int, int]:
    """CUdevice_attribute -> value; attributes not listed are 0."""
    return {
        **dict.fromkeys((1, 2, 3), 1024),  # threads of a block, and along x and y
        **{4: 64, 5: 2**31 - 1, 6: 65535, 7: 65535, 8: 48 * KB, 9: 64 * KB, 10: 32, 11: 2**31 - 1},
        **{12: 65536, 14: 512, 15: 1, 16: chip.sms, 19: 1, 30: 512, 31: 1, 32: 1, 37: 5120, 38: chip.l2},
        **{
            39: chip.threads_per_sm,
            40: 3,
            41: 1,
            51: 32,
            75: chip.major,
            76: chip.minor,
            78: 1,
            79: 1,
            80: 1,
        },
        **{81: chip.shared_per_sm, 82: 65536, 83: 1, 87: 2, 89: 1, 90: 1, 95: 1},
        **{
            97: chip.shared_per_cta,
            99: 1,
            106: chip.ctas_per_sm,
            108: chip.l2 * 3 // 4,
            109: 1 << 27,
            111: KB,
        },
        **{115: 1, 120: int(chip.cluster)},
        **{127: int(chip.cluster), 129: 1, 134: -1, 131: -1},
    }


def attribute_table(chip: ChipProperties) -> bytes:
    known = attributes(chip)
    return struct.pack(f"<{ATTRIBUTES}i", *(known.get(i, 0) for i in range(ATTRIBUTES)))


# cudaDeviceProp, field by field: a code of the struct module, then after `@` the attribute or the field of
# ChipProperties that the field holds. `*n`: n fields that are 0. CUDA 12 has more fields than CUDA 13.
_HEAD = "256s@name 16s@uuid 8s I Q@memory Q@8 i@12 i@10 Q@11 i@1 i@2 i@3 i@4 i@5 i@6 i@7"
_BUS = "Q@30 i@31 i@32 i i i i i@40 i@41"
_CACHES = "i@37 i@38 i@108 i@39 i@78 i@79 i@80 Q@81 i@82 i@83 i i i"
_TAIL = "Q@97 i i i@106 i@109 Q@111 i@99 i i i i@115 i I i I i i i@120 i@129"
LAYOUTS = {
    12: f"{_HEAD} i Q@9 i@75 i@76 Q@14 Q@51 i i@16 i i i@19 i i*40 {_BUS} i {_CACHES} "
    f"i@87 i i@89 i@90 i i@95 i {_TAIL}",
    13: f"{_HEAD} Q@9 i@75 i@76 Q@14 Q@51 i@16 i i@19 i*39 {_BUS} {_CACHES} i i@89 i@90 i i@95 {_TAIL}",
}


def properties(chip: ChipProperties, major: int) -> bytes:
    """The leading bytes of cudaDeviceProp in the layout of CUDA 12 or 13 (`major`)."""
    known = attributes(chip)
    texts = {"name": chip.name.encode(), "uuid": b"ptxsim-simulated"}
    codes, values = "", []
    for field in LAYOUTS[major].split():
        code, _, repeat = field.partition("*")
        code, _, holds = code.partition("@")
        codes += code * int(repeat or 1)
        blank = b"" if code.endswith("s") else 0
        value = (
            texts.get(holds, chip.memory)
            if holds and not holds.isdigit()
            else known.get(int(holds or -1), blank)
        )
        values += [value] * int(repeat or 1)
    return struct.pack(f"@{codes}", *values)
