"""Importers of single publications: `podium replay import NAME` finds each by its entry point."""
