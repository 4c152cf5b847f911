"""Estimators: what workers send, and what the mean of it means."""
