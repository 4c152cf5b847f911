"""Papers whose methods are no products: one file each."""
