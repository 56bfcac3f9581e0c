"""Starts one program with minimal privileges: its view of files, rights and resources are in a JSON object.

Run as a script, `python -I -S confine.py SPEC`, in its own process group. levels.py makes the SPEC:
    level       see levels.py
    uid         the user to become, or null
    root        an empty folder, where the new file system is put together ("namespaces")
    binds       [[path outside, path inside]], read-only; hide: paths whose content must not be visible
    read, write what the program may open, if Landlock is used
    argv, env, cwd, and the numbers of limits.py
This process stays outside as the guard, see guard.py. Uses only the standard library.
"""

import contextlib
import ctypes
import importlib
import json
import os
import resource
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
guard, walls = importlib.import_module("guard"), importlib.import_module("walls")  # beside this file

NOT_STARTED = 91  # exit status of the guard, like guard.MEMORY_EXCEEDED and DISK_EXCEEDED
_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = (
    0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000,
)  # fmt: skip
_BIND, _REC, _PRIVATE, _DETACH = 0x1000, 0x4000, 0x40000, 2
_PDEATHSIG, _SUBREAPER, _NO_NEW_PRIVS = 1, 36, 38
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_MOUNT_SETATTR, _RECURSIVE, _AT_FDCWD = 442, 0x8000, -100
_READONLY_NOSUID = 3
LIBC = ctypes.CDLL(None, use_errno=True)


def call(name: str, *args) -> None:
    """Call a function of libc; OSError if it fails."""
    if getattr(LIBC, name)(*args) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def main(spec: dict) -> int:
    if spec.get("inside"):  # another program has confined this one
        become(spec)
    lab = os.getppid()
    alarm = guard.Alarm()
    with contextlib.suppress(OSError, AttributeError):
        call("prctl", _SUBREAPER, 1, 0, 0, 0)
    try:
        if spec["level"] == "namespaces":
            own_namespaces()
        program = os.fork()
        if program == 0:
            alarm.close()
            become(spec)
        return guard.Guard(program, spec, lab, alarm).wait()
    except OSError as error:
        print(f"confine: {error}", file=sys.stderr)
        return NOT_STARTED


# ---- the program's side ----


def own_namespaces() -> None:
    """New namespaces for what this process starts from now on. Its files stay, to read the outer /proc."""
    flags = _NEWPID | _NEWNET | _NEWIPC | _NEWUTS
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        call("unshare", flags)
        return
    call("unshare", flags | _NEWUSER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def become(spec: dict) -> None:
    """The forked child: applies the limits and becomes the program."""
    try:
        if spec["level"] == "namespaces":
            own_files(spec)
        if not spec.get("inside"):
            limit(spec)
        if spec["uid"] is not None:
            os.setgroups([])
            os.setresgid(*[spec["uid"]] * 3)
            os.setresuid(*[spec["uid"]] * 3)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.chdir(spec["cwd"])
        if sys.platform == "linux":
            call("prctl", _PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            put_up_walls(spec)
        os.execve(spec["argv"][0], spec["argv"], spec["env"])
    except BaseException as error:
        os.write(2, f"confine: {error}\n".encode())
    finally:
        os._exit(NOT_STARTED)


def put_up_walls(spec: dict) -> None:
    """The level's own walls are required; elsewhere the system call filter is added where it is available."""
    if spec["level"] == "bubblewrap" and not spec.get("inside"):
        return  # bwrap mounts and makes its own walls; the program inside it gets here again
    call("prctl", _NO_NEW_PRIVS, 1, 0, 0, 0)
    same_user = spec["level"] == "landlock"
    if same_user or (spec["level"] == "user" and walls.version()):
        walls.only_files(spec["read"], spec["write"])
    with contextlib.nullcontext() if spec["level"] in ("user", "landlock") else contextlib.suppress(OSError):
        walls.no_calls(same_user)


def limit(spec: dict) -> None:
    wanted = {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": spec["cpu_seconds"],
        "RLIMIT_FSIZE": spec["file_size"],
        "RLIMIT_NOFILE": 256,
        "RLIMIT_AS": 2 * spec["memory"],
        "RLIMIT_NPROC": spec["processes"] + (0 if spec["uid"] is not None else threads_of_user()),
    }
    for name, value in wanted.items():
        number = getattr(resource, name, None)
        if number is not None:
            most = resource.getrlimit(number)[1]
            value = value if most == resource.RLIM_INFINITY else min(value, most)
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(number, (value, value))


def threads_of_user() -> int:
    """How many threads this user has, because the kernel counts all of them against RLIMIT_NPROC."""
    total = 0
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        with contextlib.suppress(OSError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == os.getuid():
                total += len(os.listdir(f"/proc/{name}/task"))
    return total


def own_files(spec: dict) -> None:
    """Mounts a file system in memory with only the binds, a few devices and /tmp, as the root."""
    root, size = spec["root"], f"size={spec['disk']},nr_inodes={guard.FILES}"
    call("unshare", _NEWNS)
    call("mount", b"none", b"/", None, _REC | _PRIVATE, None)
    call("mount", b"tmpfs", root.encode(), b"tmpfs", 6, f"mode=755,{size}".encode())
    os.mkdir(f"{root}/tmp")  # mounted before the binds: one of them may lie below it
    call("mount", b"tmpfs", f"{root}/tmp".encode(), b"tmpfs", 6, f"mode=1777,{size}".encode())
    for path in ("/lib", "/lib64", "/bin", "/sbin"):
        if os.path.islink(path):
            os.symlink(os.readlink(path), root + path)
    for outside, inside in spec["binds"]:
        if os.path.exists(outside):
            bind(outside, root + inside)
    for path in ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"):
        bind(path, root + path, read_only=False)
    for path, mode in (("/proc", 0o555), ("/.outside", 0o700)):
        os.makedirs(root + path, exist_ok=True)
        os.chmod(root + path, mode)
    with contextlib.suppress(OSError):  # not allowed in many containers, and not needed
        call("mount", b"proc", f"{root}/proc".encode(), b"proc", 14, None)
    for path in spec["hide"]:
        if os.path.isdir(root + path):
            call("mount", b"tmpfs", (root + path).encode(), b"tmpfs", 7, b"mode=755,size=4k")
    call("syscall", _PIVOT_ROOT[os.uname().machine], root.encode(), f"{root}/.outside".encode())
    call("umount2", b"/.outside", _DETACH)
    os.chdir("/")
    os.rmdir("/.outside")
    set_read_only("/", recursive=False)


def bind(outside: str, inside: str, read_only: bool = True) -> None:
    if os.path.isdir(outside):
        os.makedirs(inside, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(inside), exist_ok=True)
        os.close(os.open(inside, os.O_CREAT, 0o644))
    call("mount", outside.encode(), inside.encode(), None, _BIND | _REC, None)
    if read_only:
        set_read_only(inside)


def set_read_only(path: str, recursive: bool = True) -> None:
    """mount_setattr(2), Linux 5.12."""
    attributes = (ctypes.c_uint64 * 4)(_READONLY_NOSUID, 0, 0, 0)
    flags = _RECURSIVE if recursive else 0
    call("syscall", _MOUNT_SETATTR, _AT_FDCWD, path.encode(), flags, attributes, 32)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
