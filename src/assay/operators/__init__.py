"""From an Op to a torch operator that a model calls, and the contract that any operator must keep.

`define.py` makes one (`assay.torch_op`); `contract.py` judges one, made here or elsewhere
(`assay.check_operator`).
"""
