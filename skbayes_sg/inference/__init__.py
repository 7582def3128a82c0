"""From a posterior and a request to a run, its draws and its diagnostics.

Imports bases, chains, data, diagnostics, linalg, models, posterior, priors, samplers and
validation.
"""
