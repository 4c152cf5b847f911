"""What is checked of users' own parts while they run."""
