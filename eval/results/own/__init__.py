"""Tables of the measured runs that no paper prints: memory quality, all systems, costs, calls, updates.

``stages`` follows the evidence of each question from the memory to the answer and ``report`` makes its tables; the
others make one table each, and ``pages`` puts all of them together.
"""
