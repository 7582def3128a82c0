"""A posterior that is updated by one chunk of rows at a time, and chains that go on with each.

Imports chains, data, diagnostics, inference, linalg, models, posterior, priors, samplers and
validation.
"""
