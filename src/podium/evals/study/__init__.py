"""Does a team pay? A study asks the workers a user's questions, tries teams, and says what to use.

`podium study` runs a study, which decides without favouring the method that looked best by chance.
"""
