"""Walls that a process puts up around itself and its children, for good, without privileges. Only on Linux.

no_calls()   a seccomp filter: no sockets; no memory that belongs to no process (memfd, System V, shared
             mappings, pages in pipes, locks on parts of files), because it would outlast the process or
             count against no limit; no resources of which the machine has a fixed number; no namespaces,
             mounts or tracing; no change of scheduling (a process that yields to all others would never use
             up its time); with `same_user`, nothing that acts on other processes, or on the mode, owner and
             dates of files
only_files() a Landlock ruleset: only the named files, no TCP, no signals to processes outside

See linux/seccomp.h, linux/filter.h, linux/landlock.h and Documentation/userspace-api/landlock.rst. Imports
only the standard library.
"""

import ctypes
import os
import struct

LIBC = ctypes.CDLL(None, use_errno=True)
_NO_NEW_PRIVS, _SECCOMP, _FILTER_MODE = 38, 22, 2
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000  # SECCOMP_RET_*
_EPERM, _ENOSYS = 1, 38
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = (
    0x20,
    0x15,
    0x35,
    0x45,
    0x06,
)  # BPF_LD|W|ABS, BPF_JMP|.., BPF_RET
_NUMBER, _ARCH = 0, 4  # offsets in struct seccomp_data
_FIRST, _SECOND, _FOURTH = 16, 24, 40  # low halves of arguments
_NAMESPACES = 0x7E020080  # CLONE_NEW* flags of clone(2)
_OF_FCNTL = 1031, 6, 7, 37, 38  # F_SETPIPE_SZ; F_SETLK, F_SETLKW and the same of open files
_MAP_SHARED = 1  # also a bit of MAP_SHARED_VALIDATE

ARCHS = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # AUDIT_ARCH_*
REFUSED = {  # name: number on x86_64, on aarch64; None where there is none
    "socket": (41, 198), "socketpair": (53, 199),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "userfaultfd": (323, 282),
    "vmsplice": (278, 75), "landlock_create_ruleset": (444, 444),
    "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438), "kcmp": (312, 272), "perf_event_open": (298, 241), "bpf": (321, 280),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "io_setup": (206, 0), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265), "fanotify_init": (300, 262), "inotify_init": (253, None),
    "inotify_init1": (294, 26), "personality": (135, 92), "syslog": (103, 116),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274),
}  # fmt: skip
OF_OTHERS = {  # what a user may do to its other processes and to the owner, mode and dates of its files
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
}  # fmt: skip
_CLONE, _CLONE3, _FCNTL, _PRLIMIT, _MMAP = (56, 220), (435, 435), (72, 25), (302, 261), (9, 222)

# Landlock: version of its interface -> the rights that it knows
_RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}
_READ, _OF_A_FILE = 0b1101, 0x8000 | 0x4000 | 0b111  # execute, read files and folders; what a file can have
_TCP, _SCOPES = 3, 3  # bind and connect; abstract sockets and signals
_CREATE, _ADD, _RESTRICT, _PATH_BENEATH = 444, 445, 446, 1


def _call(*args) -> int:
    result = LIBC.syscall(*args)
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


# ---- seccomp ----


def no_calls(same_user: bool = False) -> None:
    """Refuses system calls that no builder of kernels needs; OSError if seccomp is not available."""
    program = filter_of(os.uname().machine, same_user)
    kept = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(kept))
    if LIBC.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) or LIBC.prctl(_SECCOMP, _FILTER_MODE, head, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp is not available")


def filter_of(machine: str, same_user: bool = False) -> bytes:
    """The filter as classic BPF; OSError for a machine whose system call numbers are not known here."""
    if machine not in ARCHS:
        raise OSError(_ENOSYS, f"no system call numbers for {machine}")
    column = list(ARCHS).index(machine)
    code = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, ARCHS[machine]), (_RETURN, 0, 0, _KILL)]
    code += [(_LOAD, 0, 0, _NUMBER)]
    if machine == "x86_64":  # numbers of the x32 interface
        code += [(_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _KILL)]
    code += [(_EQUAL, 0, 1, _CLONE3[column]), (_RETURN, 0, 0, _ERRNO | _ENOSYS)]  # libc then uses clone
    for row in (*REFUSED.values(), *(OF_OTHERS.values() if same_user else ())):
        if row[column] is not None:
            code += [(_EQUAL, 0, 1, row[column]), (_RETURN, 0, 0, _ERRNO | _EPERM)]
    code += _where(_CLONE[column], _FIRST, (_ANY_BIT, 0, 1, _NAMESPACES))
    for command in _OF_FCNTL:
        code += _where(_FCNTL[column], _SECOND, (_EQUAL, 0, 1, command))
    code += _where(_PRLIMIT[column], _FIRST, (_EQUAL, 1, 0, 0))  # on another process
    code += _where(_MMAP[column], _FOURTH, (_ANY_BIT, 0, 1, _MAP_SHARED))
    return b"".join(struct.pack("HBBI", *one) for one in [*code, (_RETURN, 0, 0, _ALLOW)])


def _where(number: int, argument: int, refused_if: tuple) -> list[tuple]:
    """Refuses a system call for some values of an argument; expects its number loaded, and loads it again."""
    return [
        (_EQUAL, 0, 4, number),
        (_LOAD, 0, 0, argument),
        refused_if,
        (_RETURN, 0, 0, _ERRNO | _EPERM),
        (_LOAD, 0, 0, _NUMBER),
    ]


# ---- Landlock ----


def version() -> int:
    """The version of Landlock's interface; 0 if there is none."""
    return max(0, LIBC.syscall(_CREATE, None, 0, 1))


def only_files(read: list[str], write: list[str]) -> None:
    """From now on only these files and what is below them can be opened; OSError without Landlock."""
    known = version()
    if not known:
        raise OSError(_ENOSYS, "Landlock is not available")
    rights = _RIGHTS[min(known, max(_RIGHTS))]
    attributes = struct.pack("QQQ", rights, _TCP if known >= 4 else 0, _SCOPES if known >= 6 else 0)
    size = 24 if known >= 6 else 16 if known >= 4 else 8
    ruleset = _call(_CREATE, attributes, size, 0)
    for paths, allowed in ((read, rights & _READ), (write, rights)):
        for path in paths:
            _allow(ruleset, path, allowed)
    if LIBC.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    _call(_RESTRICT, ruleset, 0)
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        rights = rights if os.path.isdir(path) else rights & _OF_A_FILE
        _call(_ADD, ruleset, _PATH_BENEATH, struct.pack("=QI", rights, opened), 0)
    finally:
        os.close(opened)
