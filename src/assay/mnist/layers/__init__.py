"""The layers of the network: each an Op, its gradient another, with all their back ends together.

All are judged like any other operator: `assay check assay.mnist.layers.conv2d`.
"""
