"""Does a team pay? A study asks the workers a user's questions, tries teams, and says what to use.

`podium study` runs it. It has answers, statistics, plan selection and charts in common with a suite; this package joins
them, and decides without favouring the method that happened to look best.
"""
