"""Tests of jobs that work apart from the user's tree."""
