"""Clusters: SLURM, reproducing many jobs, calibrating a link."""
