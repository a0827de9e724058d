"""What runs beside the caller: objects of an event loop, event loops in threads, and child processes."""
