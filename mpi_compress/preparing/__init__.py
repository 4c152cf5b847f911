"""From a run of a job to one that is ready: its problem, its constants, its memory, and what refuses it."""
