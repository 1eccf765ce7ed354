"""Users' laws and whole closed loops in compiled code: twins of their objects, traces of them, and what runs those."""
