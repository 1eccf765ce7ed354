"""SO(3), SE(3) and groups made of them: the algebra for people, on arrays with any leading axes."""
