"""The scatter: every method of every case by its measured time and by how far the prediction is off."""

import math
from xml.sax.saxutils import escape

LEFT, TOP, WIDTH, HEIGHT, RIGHT, BOTTOM = 70, 60, 720, 380, 30, 60
LIMITS = (0.03, 0.08, 0.15)
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328 } .small { font-size: 10px } .title { font-size: 15px; font-weight: 600 }
.grid { stroke: #d0d7de } .zero { stroke: #1f2328 } .limit { stroke: #cf222e; stroke-dasharray: 4 3; opacity: .6 }
.ps { fill: #bc4c00; opacity: .75 } .a2a { fill: #1f6feb; opacity: .75 } .other { fill: #8b949e; opacity: .6 }
.chosen { fill: none; stroke: #1a7f37; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .grid { stroke: #30363d } .zero { stroke: #e6edf3 } .limit { stroke: #ff7b72 }
  .ps { fill: #f0883e } .a2a { fill: #4493f8 } .other { fill: #8b949e } .chosen { stroke: #3fb950 }
}
"""
KINDS = (("a2a", "all-to-all"), ("ps", "parameter servers"), ("other", "not counted"))


def text(x, y, words, kind="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


class Axes:
    """Measured time on a logarithmic axis, the error on a straight one."""

    def __init__(self, rows):
        times = [row.measured for row in rows]
        self.low, self.high = 0.9 * min(times), 1.1 * max(times)
        self.most = max([0.2] + [1.05 * abs(row.error) for row in rows])

    def x(self, seconds):
        return LEFT + WIDTH * math.log(seconds / self.low) / math.log(self.high / self.low)

    def y(self, error):
        return TOP + HEIGHT / 2 * (1 - error / self.most)

    def grid(self):
        parts = [line(LEFT, self.y(0), LEFT + WIDTH, self.y(0), "zero")]
        for limit in LIMITS:
            for error in (-limit, limit):
                parts.append(line(LEFT, self.y(error), LEFT + WIDTH, self.y(error), "limit"))
                parts.append(text(LEFT - 6, self.y(error) + 4, f"{100 * error:+.0f} %", "small", "end"))
        for exponent in range(-4, 4):
            for digit in (1, 2, 5):
                seconds = digit * 10.0**exponent
                if self.low <= seconds <= self.high:
                    x = self.x(seconds)
                    parts.append(line(x, TOP, x, TOP + HEIGHT, "grid"))
                    parts.append(text(x, TOP + HEIGHT + 16, f"{1e3 * seconds:g} ms", "small", "middle"))
        return parts


def point(axes, row, result, counts):
    kind = "other" if not counts(row, result) else "ps" if "server" in row.road else "a2a"
    x, y = axes.x(row.measured), axes.y(row.error)
    title = f"{row.method}, {result.case.name}: predicted {1e3 * row.predicted:.2f} ms, measured {1e3 * row.measured:.2f} ms"
    parts = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" class="{kind}"><title>{escape(title)}</title></circle>']
    if row.chosen:
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" class="chosen"/>')
    return parts


def legend():
    parts, x = [], LEFT
    for kind, words in KINDS:
        parts += [f'<circle cx="{x + 4}" cy="40" r="4" class="{kind}"/>', text(x + 13, 44, words, "small")]
        x += 40 + 6 * len(words)
    return parts + [f'<circle cx="{x + 4}" cy="40" r="6" class="chosen"/>', text(x + 15, 44, "the tuner's choice", "small")]


def svg(judgement):
    """The picture as text, of a judgement on at least one result."""
    results = judgement.results
    rows = [row for result in results for row in result.rows]
    axes = Axes(rows)
    points = [part for result in results for row in result.rows for part in point(axes, row, result, judgement.counts)]
    width, height = LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
            f"<style>{STYLE}</style>",
            text(LEFT, 22, f"Predicted over measured iteration time, minus 1 ({len(rows)} plans of {len(results)} jobs)", "title"),
            *legend(),
            *axes.grid(),
            *points,
            text(LEFT + WIDTH / 2, TOP + HEIGHT + 40, "measured iteration time", "", "middle"),
            "</svg>\n",
        ]
    )
