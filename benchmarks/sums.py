"""Questions of a few steps, for benchmarks with real models."""

QUESTIONS = (
    "A baker sells 14 trays of 6 rolls at 0.75 dollars a roll, and gives one tray away. How much does she earn?",
    "A train leaves at 9:40 and needs 2 hours and 35 minutes, with a stop of 20 minutes. When does it arrive?",
    "Of 240 pupils a third sing, and a quarter of those who sing also dance. How many sing and do not dance?",
    "A tank of 900 litres fills at 12 litres a minute and loses 3 litres a minute. After how many minutes is it full?",
    "Three friends share 84 marbles so that one has twice as many as each of the others. How many has that one?",
    "A coat of 120 dollars gets 25 percent cheaper and then 10 percent dearer. What does it cost?",
    "A farmer has 3 fields of 4.5 hectares and sows two thirds of all of it with rye. How many hectares are that?",
    "A book of 312 pages is read in 8 days, with 9 pages more each day than the day before. How many on the first?",
    "Two taps fill a bath in 12 and in 18 minutes. How long do both together need, if both are open from the start?",
    "A cyclist rides 48 km in 2.5 hours, rests for 30 minutes and rides 30 km in 1.5 hours. What is his mean speed?",
)
