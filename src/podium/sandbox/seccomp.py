"""The filter of system calls, as instructions of classic BPF (linux/filter.h, linux/seccomp.h).

It refuses calls that no graded program needs and that have opened sandboxes before: inspecting other processes,
mounting, new namespaces, kernel modules and keys, memory that no limit counts. A refused call fails with an error, and
the program goes on. The filter exists for x86_64 and aarch64; on other machines there is none, and the sandbox warns.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Mapping

_X86_64, _AARCH64 = 0, 1
_ARCHITECTURES: Mapping[str, int] = {"x86_64": _X86_64, "aarch64": _AARCH64, "arm64": _AARCH64}
_AUDIT = (0xC000003E, 0xC00000B7)
"""AUDIT_ARCH_*: the kernel kills a process that makes a call of another instruction set."""
_X32 = 0x40000000
"""On x86_64, numbers from here on are calls of its x32 form, which the list below does not cover."""
_REFUSED: Mapping[str, tuple[int, int] | tuple[int]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "perf_event_open": (298, 241),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "unshare": (272, 97),
    "setns": (308, 268),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "personality": (135, 92),
    "lookup_dcookie": (212, 18),
    "vhangup": (153, 58),
    "iopl": (172,),
    "ioperm": (173,),
    "uselib": (134,),
    "modify_ldt": (154,),
    # io_uring makes calls that no filter sees.
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # Memory that no limit of a process or file system counts.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
}
_CLONE, _CLONE3, _SOCKET, _IOCTL = (56, 220), (435, 435), (41, 198), (16, 29)
_NEW_NAMESPACES = 0x7E020000
"""All flags CLONE_NEW* that `clone` takes."""
_FAMILIES = (1, 2, 10)
"""AF_UNIX, and IP, for which a sandbox has no network. Others, such as AF_VSOCK, may ignore namespaces."""
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, which type characters into a terminal as if its user had."""

_LOAD, _JUMP_EQUAL, _JUMP_FROM, _JUMP_ANY, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000

Instruction = tuple[int, int, int, int]
"""Code, instructions to skip if true, if false, and the operand."""


def build_filter(machine: str | None = None) -> bytes | None:
    """The filter for a machine, named as by `platform.machine`; default: this one. None where Podium has no filter."""
    kind = _ARCHITECTURES.get(machine or platform.machine())
    if kind is None:
        return None
    code: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, _AUDIT[kind]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if kind == _X86_64:
        code += [(_JUMP_FROM, 0, 1, _X32), _refuse(errno.EPERM)]
    for numbers in _REFUSED.values():
        if kind < len(numbers):
            code += _for_call(numbers[kind], [_refuse(errno.EPERM)])
    # The flags of `clone3` lie in memory, which a filter cannot read. On ENOSYS the C library falls back to `clone`.
    code += _for_call(_CLONE3[kind], [_refuse(errno.ENOSYS)])
    code += _for_call(_CLONE[kind], _allow_unless((_JUMP_ANY, _NEW_NAMESPACES), _FIRST_ARGUMENT))
    code += _for_call(_SOCKET[kind], _allow_if_one_of(_FAMILIES, _FIRST_ARGUMENT))
    code += _for_call(_IOCTL[kind], _allow_unless((_JUMP_EQUAL, *_TERMINAL_INPUT), _SECOND_ARGUMENT))
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _refuse(error: int) -> Instruction:
    return (_RETURN, 0, 0, _ERROR | error)


def _for_call(number: int, then: list[Instruction]) -> list[Instruction]:
    """The instructions `then`, for calls of this number; they must end with a return."""
    return [(_JUMP_EQUAL, 0, len(then), number), *then]


def _allow_unless(condition: tuple[int, ...], argument: int) -> list[Instruction]:
    """Allow the call unless an argument fulfils the condition: a jump, and operands. One matching operand is enough."""
    jump, *operands = condition
    tests = [(jump, len(operands) - i, 0, operand) for i, operand in enumerate(operands)]
    return [(_LOAD, 0, 0, argument), *tests, (_RETURN, 0, 0, _ALLOW), _refuse(errno.EPERM)]


def _allow_if_one_of(values: tuple[int, ...], argument: int) -> list[Instruction]:
    tests = [(_JUMP_EQUAL, len(values) - i, 0, value) for i, value in enumerate(values)]
    return [(_LOAD, 0, 0, argument), *tests, _refuse(errno.EPERM), (_RETURN, 0, 0, _ALLOW)]
