"""Minimum-cost assignment, to pair interchangeable pods of two histories. Pure."""

from __future__ import annotations


def assign(costs: list[list[float]]) -> list[int]:
    """Column of each row of a square matrix, with the least sum of costs. Hungarian method, O(n^3)."""
    size = len(costs)
    row_of = [-1] * (size + 1)  # by column; the last one is virtual
    by_row, by_column = [0.0] * size, [0.0] * (size + 1)
    for row in range(size):
        row_of[size] = row
        column, path = _cheapest_path(costs, row_of, by_row, by_column)
        while column != size:
            row_of[column] = row_of[path[column]]
            column = path[column]
    result = [0] * size
    for column in range(size):
        result[row_of[column]] = column
    return result


def _cheapest_path(
    costs: list[list[float]], row_of: list[int], by_row: list[float], by_column: list[float]
) -> tuple[int, list[int]]:
    """Free column with the cheapest augmenting path, and that path; updates the potentials."""
    size = len(costs)
    path, least, done = [size] * size, [float("inf")] * size, [False] * (size + 1)
    column = size
    while row_of[column] >= 0:
        done[column] = True
        here = row_of[column]
        for other in [other for other in range(size) if not done[other]]:
            cost = costs[here][other] - by_row[here] - by_column[other]
            if cost < least[other]:
                least[other], path[other] = cost, column
        column = min((other for other in range(size) if not done[other]), key=least.__getitem__)
        step = least[column]
        for other in range(size + 1):
            if done[other]:
                by_row[row_of[other]] += step
                by_column[other] -= step
            elif other < size:
                least[other] -= step
    return column, path
