"""Registers of the machine, as C++ expressions in lane `l`."""

from __future__ import annotations

SPECIAL = {
    **{f"%tid.{axis}": f"W.tid[{k}][l]" for k, axis in enumerate("xyz")},
    **{f"%ntid.{axis}": f"L.threads[{k}]" for k, axis in enumerate("xyz")},
    **{f"%ctaid.{axis}": f"B.id[{k}]" for k, axis in enumerate("xyz")},
    **{f"%nctaid.{axis}": f"L.grid[{k}]" for k, axis in enumerate("xyz")},
    # A launch without clusters: each block is one.
    **{f"%cluster_ctaid.{axis}": "0u" for axis in "xyz"},
    **{f"%cluster_nctaid.{axis}": "1u" for axis in "xyz"},
    **{f"%clusterid.{axis}": f"B.id[{k}]" for k, axis in enumerate("xyz")},
    **{f"%nclusterid.{axis}": f"L.grid[{k}]" for k, axis in enumerate("xyz")},
    "%cluster_ctarank": "0u",
    "%cluster_nctarank": "1u",
    "%laneid": "(u32)l",
    "%warpid": "W.index",
    "%nwarpid": "B.warps",
    "%smid": "(u32)(B.linear % 132)",
    "%nsmid": "132u",
    "%gridid": "0ull",
    "%lanemask_eq": "(1u << l)",
    "%lanemask_lt": "((1u << l) - 1u)",
    "%lanemask_le": "((2u << l) - 1u)",
    "%lanemask_gt": "(~((2u << l) - 1u))",
    "%lanemask_ge": "(~((1u << l) - 1u))",
    # No clock of a card: time is what the warp has done.
    "%clock": "(u32)(W.steps + W.spins)",
    "%clock_hi": "0u",
    "%clock64": "(W.steps + W.spins)",
    "%globaltimer": "(W.steps + W.spins)",
    "%globaltimer_lo": "(u32)(W.steps + W.spins)",
    "%globaltimer_hi": "0u",
    "%dynamic_smem_size": "L.dynamic_shared",
    "%total_smem_size": "B.shared_bytes",
    "%envreg1": "(u32)(L.environment >> 32)",
    "%envreg2": "(u32)L.environment",
}

WIDE = frozenset({"%clock64", "%globaltimer", "%gridid"})
"""Those of 64 bits."""
