"""From a run of a job to one that can be played: its problem, its constants, its memory, and what refuses it."""
