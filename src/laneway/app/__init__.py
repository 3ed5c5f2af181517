"""Joins engines, hub, mail and front ends into running programs. `cli` reads the flags and prints."""
