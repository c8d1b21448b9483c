"""As much of torch as the types of a loader name, where torch is not installed."""

class Tensor:
    def backward(self) -> None: ...

class device:
    def __init__(self, name: str) -> None: ...
