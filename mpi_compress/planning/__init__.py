"""What jobs will take, and running many of them on this machine: estimates, the model of scale, timing of links, the pool."""
