"""Files on disk: written whole, read as tables or as SQLite, and where Podium keeps its own."""
