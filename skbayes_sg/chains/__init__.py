"""The loop over steps, its processes, and pilot runs. Imports diagnostics, linalg and samplers."""
