"""As much of torch as the types of a loader name."""
