"""Telling what wick.compile made of a call."""

import textwrap


class BreakReason:
    """Why a graph ended, and where."""

    def __init__(self, reason, file, line):
        self.reason, self.file, self.line = reason, file, line

    def __repr__(self):
        return f"{self.file}:{self.line}: {self.reason}" if self.file else self.reason


class Explanation:
    """The graphs, guards and breaks of one call of a function."""

    def __init__(self, entries):
        """Takes the entries with the code objects that they were made for."""
        self.codes = [code for code, _ in entries]
        self.entries = [entry for _, entry in entries]
        self.graphs = [e["graph"] for e in self.entries if e["graph"] is not None]
        self.graph_count = len(self.graphs)
        self.break_reasons = [
            BreakReason(e["reason"], e["file"], e["line"])
            for e in self.entries
            if not e["complete"] and not e["raises"]
        ]
        self.graph_break_count = len(self.break_reasons)
        self.op_count = sum(e["operators"] for e in self.entries)
        self.guards = [g for e in self.entries for g in e["guards"]]

    def __str__(self):
        lines = [
            ", ".join(
                [
                    _count(self.graph_count, "graph"),
                    _count(self.op_count, "operator"),
                    _count(self.graph_break_count, "break"),
                    _count(len(self.guards), "guard"),
                ]
            )
        ]
        lines += [f"  break: {reason}" for reason in self.break_reasons]
        for number, (code, entry) in enumerate(zip(self.codes, self.entries), 1):
            lines += ["", f"{number}. {describe(code)}"] + _sections(entry)
        if not self.entries:
            lines.append("  nothing was captured: the call runs plainly")
        return "\n".join(lines)

    __repr__ = __str__


def describe(code):
    """The name and place of a function."""
    return f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"


def _count(number, noun):
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _sections(entry):
    """The lines of an entry: its guards, its graph, and how the frame goes on."""
    lines = []
    # That a thing is there follows from the guards that look into it.
    telling = [g for g in entry["guards"] if not g.endswith(" exists")]
    if telling:
        lines += ["  guards"] + ["    " + g for g in telling]
    if entry["graph"] is not None:
        lines += ["  " + _count(entry["operators"], "operator")]
        lines += [textwrap.indent(entry["graph"].rstrip(), "    ")]
    if entry["effects"]:
        lines += ["  then"] + ["    " + line for line in entry["effects"]]
    lines.append("  " + _end(entry))
    return lines


def _end(entry):
    place = f" ({entry['file']}:{entry['line']})" if entry["file"] else ""
    if entry["plain"]:
        return f"runs plainly: {entry['reason']}{place}"
    if entry["complete"]:
        return "returns"
    if entry["raises"]:
        return f"ends where {entry['reason']}{place}"
    return f"breaks: {entry['reason']}{place}"
