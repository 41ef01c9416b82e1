"""The published experiments: accuracy, timing, histogram, plots."""
