"""What takes how long: every module here has a `main` that prints a table; `python -m benchmarks [NAME…]` runs them."""
