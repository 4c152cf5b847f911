"""Jobs: a TOML file read, checked, and unfolded into runs."""
