// What a kernel that was translated from PTX includes.
#pragma once

#include "numbers.h"
#include "half.h"
#include "approx.h"
#include "rounding.h"
#include "warp.h"
#include "memory.h"
#include "lanes.h"
#include "tensor.h"
