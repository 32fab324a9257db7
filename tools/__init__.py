"""What `make` runs: the environment, the book's build, the checks and their summary."""
