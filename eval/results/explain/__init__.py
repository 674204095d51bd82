"""From a cell of a table back to its run: id, commit, data, model, settings, and the questions it lost.

``find`` picks cells, ``settings`` lists what the run did on other terms than the paper, ``questions`` reads the worst
ones from the run directory, ``show`` prints. ``memsys explain TABLE ROW COLUMN`` does all.
"""
