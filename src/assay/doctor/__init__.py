"""The doctor: what this machine has for GPU kernels, what is wrong, and the fix for each."""

from assay.doctor.facts import Device, Facts, Finding, Probe, Report
from assay.doctor.fixes import denied
from assay.doctor.gather import diagnose
from assay.doctor.page import render

__all__ = ["Device", "Facts", "Finding", "Probe", "Report", "denied", "diagnose", "render"]
