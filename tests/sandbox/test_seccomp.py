"""The filter, run here as the kernel runs it."""

from __future__ import annotations

import struct

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


CALLS = [
    # name, on x86_64, on aarch64, arguments, verdict
    ("read", 0, 63, (), ALLOWED),
    ("write", 1, 64, (), ALLOWED),
    ("execve", 59, 221, (), ALLOWED),
    ("prctl", 157, 167, (), ALLOWED),
    ("mmap", 9, 222, (), ALLOWED),
    ("ptrace", 101, 117, (), EPERM),
    ("process_vm_readv", 310, 270, (), EPERM),
    ("process_vm_writev", 311, 271, (), EPERM),
    ("mount", 165, 40, (), EPERM),
    ("umount2", 166, 39, (), EPERM),
    ("unshare", 272, 97, (0x10000000,), EPERM),
    ("setns", 308, 268, (), EPERM),
    ("bpf", 321, 280, (), EPERM),
    ("keyctl", 250, 219, (), EPERM),
    ("userfaultfd", 323, 282, (), EPERM),
    ("kexec_load", 246, 104, (), EPERM),
    ("io_uring_setup", 425, 425, (), EPERM),
    ("memfd_create", 319, 279, (), EPERM),
    ("a fork", 56, 220, (0x1200011,), ALLOWED),
    ("a thread", 56, 220, (0x3D0F00,), ALLOWED),
    ("clone with a user namespace", 56, 220, (0x10000011,), EPERM),
    ("clone with a mount namespace", 56, 220, (0x20011,), EPERM),
    ("clone with a time", 56, 220, (0x40000000,), EPERM),
    ("clone3", 435, 435, (), ENOSYS),
    ("a Unix socket", 41, 198, (1, 1), ALLOWED),
    ("a socket of IP", 41, 198, (2, 1), ALLOWED),
    ("a socket of IPv6", 41, 198, (10, 1), ALLOWED),
    ("a socket of the machine's host", 41, 198, (40, 1), EPERM),
    ("a socket of the kernel", 41, 198, (16, 3), EPERM),
    ("asking for a terminal", 16, 29, (0, 0x5401), ALLOWED),
    ("typing into a terminal", 16, 29, (0, 0x5412), EPERM),
]


@pytest.mark.parametrize("machine", AUDIT)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0])
def test_calls_are_allowed_or_refused(machine: str, call: tuple[str, int, int, tuple[int, ...], int]) -> None:
    program = seccomp.program(machine)
    assert program is not None
    number = call[1 if machine == "x86_64" else 2]
    assert verdict(program, AUDIT[machine], number, *call[3]) == call[4]


@pytest.mark.parametrize("machine", AUDIT)
def test_calls_of_another_instruction_set_end_the_process(machine: str) -> None:
    program = seccomp.program(machine)
    assert program is not None
    for audit in (0x40000003, 0x40000028, *(other for name, other in AUDIT.items() if name != machine)):
        assert verdict(program, audit, 0) == ENDED


def test_calls_under_the_numbers_of_32_bits_are_refused() -> None:
    program = seccomp.program("x86_64")
    assert program is not None
    assert verdict(program, AUDIT["x86_64"], 0x40000000 + 1) == EPERM


def test_an_unknown_machine_has_no_filter() -> None:
    assert seccomp.program("pdp11") is None
