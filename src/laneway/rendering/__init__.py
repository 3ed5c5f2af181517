"""Texts about sessions that all front ends share: questions, activities, diffs, refusals."""
