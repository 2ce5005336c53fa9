"""Classifiers trained on what was generated and judged: orders, the worker's side, test sets and their scores."""
