"""Pictures: the only room that knows a plotting library."""
