"""Where graded code runs: programs that nobody has read, kept from the machine and from each other.

`inside` is loaded by the interpreter that waits in a sandbox, and shares its way of speaking with `cell`, its other
end. This module imports nothing, so that the interpreter inside starts fast.
"""
