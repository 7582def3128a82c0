"""The loop over steps, its processes, and pilot runs.

Imports data, diagnostics, linalg and samplers.
"""
