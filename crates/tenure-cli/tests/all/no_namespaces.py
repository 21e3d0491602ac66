"""Runs a program that is refused namespaces, as in many containers: landlock alone confines what it starts."""

import ctypes
import os
import struct
import sys

UNSHARE = {"x86_64": 272, "aarch64": 97}[os.uname().machine]
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
REFUSE, ALLOW = 0x00050000 | 1, 0x7FFF0000
FILTER = b"".join(
    struct.pack("HBBI", *line)
    for line in [(LOAD, 0, 0, 0), (EQUAL, 0, 1, UNSHARE), (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
)


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


libc = ctypes.CDLL(None, use_errno=True)
lines = ctypes.create_string_buffer(FILTER)
program = Program(4, ctypes.addressof(lines))
assert libc.prctl(38, 1, 0, 0, 0) == 0, "no_new_privs"
assert libc.prctl(22, 2, ctypes.byref(program)) == 0, os.strerror(ctypes.get_errno())
os.execvp(sys.argv[1], sys.argv[1:])
