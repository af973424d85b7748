// One training step of the network of the notes (sizes fixed, see layout.cuh) in seven kernels, tf32:
//
//   patch_products   statistics of the first batchnorm, from products of pixels
//   second_conv      digits -> conv, batchnorm, relu, pool -> conv, its statistics, pooled winners
//   hidden           batchnorm, relu -> linear 1568 -> 128, in parts of the sum
//   head             relu, linear 10, cross-entropy, their gradients
//   hidden_grad      gradients of linear 1568 -> 128, and the sums of the second batchnorm's
//   convs_grad       everything before it again, then both convolutions backward
//   finish           sums of partial gradients, and the update
//
// Kernels end where the whole batch must be known: twice for a batchnorm forward, twice backward.
//
// A kernel may start before the one in front of it has ended (programmatic dependent launch), and then
// waits for it. Each lets the next start only after its own wait, so what the kernel before the last
// wrote can be read before the wait: weights, m, known1, known2, the head's sums; and what no kernel
// that may still run reads can be written: `finish` updates the linear layers beside `convs_grad`,
// which needs none of them. `convs_grad` makes the first block of layers of its first digit again
// before it waits, and takes the number of the step from known1: the count is written by `hidden_grad`
// at its end, when `head` has ended, and `finish` starts after that.
// `patch_products` is the exception: it reads digits alone, lets the next start at once and waits last.
// When it starts, `finish` of the step before has waited for `convs_grad`, so the count stands for it
// and for `second_conv`, whose own wait is for `patch_products` and so for `finish`.
// The first step of a graph does not start early: what is in front of it is not of these kernels.
#include "finish.cuh"
