"""What a package that extends Podium derives its classes from, and what these take and return: a module for each sort.

`podium.plugins` finds such packages. docs/architecture.md has the groups of their entry points, AGENTS.md what each
extension brings. Nothing is defined here.
"""
