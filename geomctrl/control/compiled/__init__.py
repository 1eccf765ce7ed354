"""Users' laws and whole closed loops in compiled code: copies of their objects, traces of them, and what runs those."""
