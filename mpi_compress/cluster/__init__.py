"""SLURM: scripts, the queue, notes of what was submitted, and the status of each run joined with its task's."""
