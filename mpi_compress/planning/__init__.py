"""What jobs will take, and running many of them on this machine: estimates, timing of links, the pool."""
