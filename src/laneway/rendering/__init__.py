"""Texts about sessions that every front end shows alike: questions, activities, diffs, refusals."""
