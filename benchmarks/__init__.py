"""Measurements: ratios of one interleaved run, and counts that no machine changes."""
