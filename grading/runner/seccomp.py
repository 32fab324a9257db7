"""A filter that refuses system calls which learners' code does not need.

The sandbox does not depend on it; it reduces what an attack can reach. New user namespaces, keys
that processes share, sockets that a network namespace does not isolate, and the calls behind most
known escapes from sandboxes are refused, permanently, to the process and to everything it starts.
So is memory that belongs neither to a process nor to a file of the sandbox, because nothing would
count it: pages held only by a pipe or a socket, event queues, locks of single bytes. A filter is a
small program for the kernel (see seccomp(2) in the Linux manual).
"""

import ctypes
import errno
import os
import platform
import struct

PR_SET_SECCOMP, MODE_FILTER = 22, 2
ALLOW, ERROR = 0x7FFF0000, 0x00050000
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # instructions
CALL, MACHINE, ARGUMENT, SECOND, FLAGS = 0, 4, 16, 24, 40  # offsets in the data that a filter sees
CLONE_NEWUSER = 0x10000000
FAMILIES = (1, 2, 10, 16)  # unix, inet, inet6, netlink: these belong to the sandbox
X32 = 0x40000000  # the bit of x86's third set of calls

# name: numbers on x86_64 and on aarch64
REFUSED = {
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "open_by_handle_at": (304, 265),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "vmsplice": (278, 75),
    "splice": (275, 76),
    "tee": (276, 77),
    "sendfile": (40, 71),
    "inotify_init1": (294, 26),  # they also reveal which files other programs open
    "fanotify_init": (300, 262),
    "io_setup": (206, 0),  # of these, all programs of the machine have a number together
}
# A change of rights would reach Python itself through /proc/self/exe if it is the grader's own.
# The call is reported as successful but not made: copying a file needs that.
# A submission stays one session and one group: the scheduler shares processors out by these.
PRETENDED = {
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "setsid": (112, 157),
    "setpgid": (109, 154),
}
CLONE, CLONE3, MMAP = (56, 220), (435, 435), (9, 222)
SOCKET, SOCKETPAIR = (41, 198), (53, 199)
FCNTL, LOCKS = (72, 25), (6, 7, 37, 38)  # F_SETLK and F_OFD_SETLK, without and with waiting
PRCTL, PR_SET_DUMPABLE = (157, 167), 4  # a process may not hide from the watch
MAP_SHARED, MAP_ANONYMOUS = 0x01, 0x20
MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}


def program(machine: str) -> bytes:
    """The filter for this kind of machine.

    Raises:
        OSError: if its numbers are not known here.
    """
    if machine not in MACHINES:
        raise OSError(errno.ENOSYS, f"no filter of system calls for {machine}")
    kind, column = MACHINES[machine]
    lines: list[tuple[int, int, int, int]] = []

    def add(code: int, value: int, yes: int = 0, no: int = 0) -> None:
        """One instruction; a comparison skips `yes` or `no` of the next ones."""
        lines.append((code, yes, no, value))

    def answer(number: int, with_error: int) -> None:
        add(EQUAL, number, 0, 1)
        add(RETURN, ERROR | with_error)

    add(LOAD, MACHINE)
    add(EQUAL, kind, 1, 0)
    add(RETURN, ERROR | errno.ENOSYS)
    add(LOAD, CALL)
    add(AT_LEAST, X32, 0, 1)
    add(RETURN, ERROR | errno.ENOSYS)
    for numbers in REFUSED.values():
        answer(numbers[column], errno.EPERM)
    for numbers in PRETENDED.values():
        answer(numbers[column], 0)
    if machine == "x86_64":
        answer(90, 0)  # chmod
        answer(253, errno.EPERM)  # inotify_init
    answer(CLONE3[column], errno.ENOSYS)  # its flags cannot be seen; clone is used instead
    add(EQUAL, CLONE[column], 0, 4)
    add(LOAD, ARGUMENT)
    add(ANY_BIT, CLONE_NEWUSER, 0, 1)
    add(RETURN, ERROR | errno.EPERM)
    add(RETURN, ALLOW)
    add(EQUAL, PRCTL[column], 0, 4)
    add(LOAD, ARGUMENT)
    add(EQUAL, PR_SET_DUMPABLE, 0, 1)
    add(RETURN, ERROR)
    add(RETURN, ALLOW)
    add(EQUAL, MMAP[column], 0, 5)
    add(LOAD, FLAGS)
    add(ANY_BIT, MAP_ANONYMOUS, 0, 2)
    add(ANY_BIT, MAP_SHARED, 0, 1)  # MAP_SHARED_VALIDATE has that bit too
    add(RETURN, ERROR | errno.EPERM)
    add(RETURN, ALLOW)
    add(EQUAL, FCNTL[column], 0, len(LOCKS) + 3)
    add(LOAD, SECOND)
    for place, kind_of_lock in enumerate(LOCKS):
        add(EQUAL, kind_of_lock, len(LOCKS) - place, 0)
    add(RETURN, ALLOW)
    add(RETURN, ERROR | errno.ENOLCK)
    add(EQUAL, SOCKET[column], 1, 0)
    add(EQUAL, SOCKETPAIR[column], 0, len(FAMILIES) + 2)
    add(LOAD, ARGUMENT)
    for place, family in enumerate(FAMILIES):
        add(EQUAL, family, len(FAMILIES) - place, 0)
    add(RETURN, ERROR | errno.EAFNOSUPPORT)
    add(RETURN, ALLOW)
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def install() -> None:
    """Filter this process's system calls from now on; it must have set "no new privileges" before.

    Raises:
        OSError: if the kernel does not take the filter.
    """
    code = program(platform.machine())
    buffer = ctypes.create_string_buffer(code, len(code))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

    filter_program = Program(len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.byref(filter_program), 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")
