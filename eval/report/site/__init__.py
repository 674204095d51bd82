"""A folder of static pages of results that can be hosted anywhere: no server, and nothing is loaded from a network.

``index.html`` has every comparison, ``systems/`` a page for each system, ``questions/`` one for the questions of each
data set. The pages are those of ``memsys report`` (:mod:`eval.report.page`) with other data; they hold no text that
may not be passed on.
"""
