"""Draws a unified diff as pictures, in a process of its own (`python -m laneway.rendering.diff_images`).

Only that process imports Pillow and pygments, which come with `laneway[images]`.
"""
