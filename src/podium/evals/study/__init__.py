"""Does a team pay? A study asks the workers a user's questions, tries teams, and says what to use.

`podium study` runs a study. It uses the answers, statistics, plan selection and charts of suites, and decides without
favouring the method that looked best by chance.
"""
