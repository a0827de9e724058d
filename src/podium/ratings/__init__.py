"""What workers are good at, measured: recordings made from live workers, their answers as arrays, and ratings.

`podium.workers.ratings` reads the file of ratings that a pool names; this package makes it.
"""
