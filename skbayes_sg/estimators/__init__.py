"""scikit-learn's face: estimators, their input and their files.

Imports all that is below, and callbacks.
"""
