"""The filter, run here as the kernel runs it."""

from __future__ import annotations

import struct
from typing import NamedTuple

import pytest

from podium.sandbox import seccomp

ALLOWED, ENDED, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x50001, 0x50026
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def verdict(program: bytes, audit: int, number: int, *arguments: int) -> int:
    """What the filter says of a call: classic BPF, as far as it is used."""
    data = struct.pack("<iIQ6Q", number, audit, 0, *arguments, *[0] * (6 - len(arguments)))
    code = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    accumulator, at = 0, 0
    while True:
        kind, if_true, if_false, operand = code[at]
        at += 1
        if kind == 0x20:
            accumulator = struct.unpack_from("<I", data, operand)[0]
        elif kind == 0x06:
            return operand
        else:
            holds = {0x15: accumulator == operand, 0x35: accumulator >= operand, 0x45: accumulator & operand}[
                kind
            ]
            at += if_true if holds else if_false


class Call(NamedTuple):
    """A call of the kernel, its number on each machine, and what the filter says of it."""

    name: str
    x86_64: int
    aarch64: int
    verdict: int
    arguments: tuple[int, ...] = ()


CALLS = [
    Call("read", 0, 63, ALLOWED),
    Call("write", 1, 64, ALLOWED),
    Call("execve", 59, 221, ALLOWED),
    Call("prctl", 157, 167, ALLOWED),
    Call("mmap", 9, 222, ALLOWED),
    Call("ptrace", 101, 117, EPERM),
    Call("process_vm_readv", 310, 270, EPERM),
    Call("process_vm_writev", 311, 271, EPERM),
    Call("mount", 165, 40, EPERM),
    Call("umount2", 166, 39, EPERM),
    Call("unshare", 272, 97, EPERM, (0x10000000,)),
    Call("setns", 308, 268, EPERM),
    Call("bpf", 321, 280, EPERM),
    Call("keyctl", 250, 219, EPERM),
    Call("userfaultfd", 323, 282, EPERM),
    Call("kexec_load", 246, 104, EPERM),
    Call("io_uring_setup", 425, 425, EPERM),
    Call("memfd_create", 319, 279, EPERM),
    Call("a fork", 56, 220, ALLOWED, (0x1200011,)),
    Call("a thread", 56, 220, ALLOWED, (0x3D0F00,)),
    Call("clone with a user namespace", 56, 220, EPERM, (0x10000011,)),
    Call("clone with a mount namespace", 56, 220, EPERM, (0x20011,)),
    Call("clone with a time", 56, 220, EPERM, (0x40000000,)),
    Call("clone3", 435, 435, ENOSYS),
    Call("a Unix socket", 41, 198, ALLOWED, (1, 1)),
    Call("a socket of IP", 41, 198, ALLOWED, (2, 1)),
    Call("a socket of IPv6", 41, 198, ALLOWED, (10, 1)),
    Call("a socket of the machine's host", 41, 198, EPERM, (40, 1)),
    Call("a socket of the kernel", 41, 198, EPERM, (16, 3)),
    Call("asking for a terminal", 16, 29, ALLOWED, (0, 0x5401)),
    Call("typing into a terminal", 16, 29, EPERM, (0, 0x5412)),
]


@pytest.mark.parametrize("machine", AUDIT)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_calls_are_allowed_or_refused(machine: str, call: Call) -> None:
    program = seccomp.build_filter(machine)
    assert program is not None
    number = call.x86_64 if machine == "x86_64" else call.aarch64
    assert verdict(program, AUDIT[machine], number, *call.arguments) == call.verdict


@pytest.mark.parametrize("machine", AUDIT)
def test_calls_of_another_instruction_set_end_the_process(machine: str) -> None:
    program = seccomp.build_filter(machine)
    assert program is not None
    for audit in (0x40000003, 0x40000028, *(other for name, other in AUDIT.items() if name != machine)):
        assert verdict(program, audit, 0) == ENDED


def test_calls_under_the_numbers_of_32_bits_are_refused() -> None:
    program = seccomp.build_filter("x86_64")
    assert program is not None
    assert verdict(program, AUDIT["x86_64"], 0x40000000 + 1) == EPERM


def test_an_unknown_machine_has_no_filter() -> None:
    assert seccomp.build_filter("pdp11") is None
