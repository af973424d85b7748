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
#include "finish.cuh"
