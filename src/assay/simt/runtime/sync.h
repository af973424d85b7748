// Order between warps and between blocks beyond barriers (sync.cc).
#pragma once

#include "shadow.h"

void acquire_block(Warp& W, u64 entry);
void acquire_warp(Warp& W, u64 entry);
void try_complete(Block& block);
void next_clock(Warp& W);
bool met(Warp& W, u32 members, u32 here);
