"""Benchmarks, a folder for each question: `python -m benchmarks.<folder>.<name>`."""
