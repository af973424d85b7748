"""What this machine can do at most, measured: `assay roofs`.

gpu.py and cpu.py say what is measured and by which kernels; roofs.cu has those of a GPU.
sampling.py turns samples into a Roof, doubt.py says why it can't be believed, child.py is the
process that measures, measure.py its parent's side, store.py keeps what was measured.
"""
