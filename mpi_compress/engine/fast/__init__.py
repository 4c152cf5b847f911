"""Ways to play all workers of one process together, equal to one by one to the last bit."""
