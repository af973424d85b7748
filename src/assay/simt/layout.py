"""The structures of runtime/warp.h, field by field."""

from __future__ import annotations

import ctypes
from ctypes import c_uint32 as u32
from ctypes import c_uint64 as u64
from ctypes import c_void_p as pointer


class SiteCount(ctypes.Structure):
    _fields_ = [
        (name, u64)
        for name in (
            "requests",
            "lanes",
            "sectors",
            "ideal_sectors",
            "wavefronts",
            "ideal_wavefronts",
            "bytes",
            "contended",
        )
    ]


class BlockCount(ctypes.Structure):
    _fields_ = [("warps", u64), ("lanes", u64)]


class Window(ctypes.Structure):
    _fields_ = [
        ("host", pointer),
        ("bytes", u64),
        ("written", pointer),
        ("flags", u64),
        ("record", pointer),
    ]


class Fault(ctypes.Structure):
    _fields_ = [
        ("kind", u32),
        ("site", u32),
        ("block", u32 * 3),
        ("thread", u32),
        ("address", u64),
        ("other", u64),
        ("other_site", u32),
        ("bytes", u32),
        ("launch_block", u64),
    ]


class Launch(ctypes.Structure):
    _fields_ = [
        ("windows", u64),
        ("window", ctypes.POINTER(Window)),
        ("sites", u64),
        ("site", ctypes.POINTER(SiteCount)),
        ("blocks_of_code", u64),
        ("block_count", ctypes.POINTER(BlockCount)),
        ("fault", ctypes.POINTER(Fault)),
        ("faults", u64),
        ("max_faults", u64),
        ("grid", u32 * 3),
        ("threads", u32 * 3),
        ("dynamic_shared", u32),
        ("static_shared", u32),
        ("parameters", pointer),
        ("parameter_bytes", u64),
        ("register_bytes", u64),
        ("local_bytes", u64),
        ("run", pointer),
        ("depth", ctypes.POINTER(u32)),
        ("above", ctypes.POINTER(u32)),
        ("order", u64),
        ("checks", u32),
        ("counts", u32),
        ("granule_shift", u32),
        ("shared_granule_shift", u32),
        ("communicates", u32),
        ("host_threads", u32),
        ("one_program", u32),
        ("max_resident", u32),
        ("quota", u32),
        ("step_limit", u64),
        ("first_block", u64),
        ("printed", pointer),
        ("printed_bytes", u64),
        ("max_printed", u64),
        ("stopped", u64),
        ("conflict", u64),
        ("environment", u64),
        ("writer", pointer),
        ("reader", pointer),
        ("writer_site", pointer),
    ]
