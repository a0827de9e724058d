"""Does a team pay? A study records the workers on a user's questions, tries teams, and says what to use.

`podium study` runs it. Recording, ratings, plan selection and charts are other packages'; this one
joins them, and decides without favouring the method that happened to look best.
"""
