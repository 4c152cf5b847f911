"""Problems: losses, data sets, the objective of a shard, and its minimiser."""
