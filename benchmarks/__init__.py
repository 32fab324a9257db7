"""Scripts that measure: speed as a ratio, side by side in one run. README.md has the tables."""
