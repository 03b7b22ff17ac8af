"""Where the wall clock of a run goes outside of steps and waits: looks at the loop's thread, kept in a file.

looks     what runs the looks, 20 a second at first, and what each of them finds
stacks    what a stack says: evaluation, checkpoint, logging; the function, and the line that calls it
spent     what was found, summed, and its file in the run folder
"""
