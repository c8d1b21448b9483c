"""As much of JAX as the types of a loader name, where JAX is not installed."""

class Array:
    def block_until_ready(self) -> Array: ...
