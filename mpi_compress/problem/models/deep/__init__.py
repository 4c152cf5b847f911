"""Neural networks as models, in JAX: `pip install 'mpi-compress[deep]'`."""
