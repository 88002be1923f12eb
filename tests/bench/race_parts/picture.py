"""One picture of a race: a bar a system, grouped by case, in multiples of the case's bound, which is a line at 1."""

from xml.sax.saxutils import escape

BAR, BETWEEN_BARS, BETWEEN_CASES = 9, 1, 16
LEFT, RIGHT, TOP, BOTTOM = 250, 70, 64, 40
PLOT_WIDTH = 620
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.small { font-size: 10px } .title { font-size: 15px; font-weight: 600 }
.grid { stroke: #d0d7de } .bound { stroke: #cf222e; stroke-width: 1.5 } .boundtext { fill: #cf222e }
.ours { fill: #1f6feb } .imitation { fill: #9ec5fe } .peer0 { fill: #57606a } .peer { fill: #b6bcc2 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .grid { stroke: #30363d } .bound { stroke: #ff7b72 } .boundtext { fill: #ff7b72 }
  .ours { fill: #4493f8 } .imitation { fill: #274b7a } .peer0 { fill: #8b949e } .peer { fill: #484f58 }
}
"""


def classes(result):
    """A colour a system: the tuner's choice, other plans of ours, the peer's default, the peer's other settings."""
    for system in result.systems:
        if system is result.chosen:
            yield system, "ours"
        elif system.ours:
            yield system, "imitation"
        else:
            yield system, "peer0" if system is result.default_peer else "peer"


def text(x, y, words, kind="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def bars(result, top, scale):
    """One case's bars from `top` down, with their labels."""
    height = len(result.systems) * (BAR + BETWEEN_BARS)
    bound = result.bounds.per_layer_barrier
    parts = [
        text(LEFT - 8, top + height / 2, result.case.name, anchor="end"),
        text(LEFT - 8, top + height / 2 + 13, f"bound {bound * 1e3:.0f} ms", "small", "end"),
    ]
    for index, (system, kind) in enumerate(classes(result)):
        y = top + index * (BAR + BETWEEN_BARS)
        width = system.seconds / bound * scale
        parts.append(f'<rect x="{LEFT}" y="{y:.1f}" width="{width:.1f}" height="{BAR}" class="{kind}"/>')
        name = system.title.removeprefix("commtune: ")
        parts.append(text(LEFT + width + 4, y + BAR - 1, f"{system.seconds * 1e3:.0f} ms  {name}", "small"))
    return parts


def legend():
    parts, x = [], LEFT
    for kind, words in (
        ("ours", "commtune's choice"),
        ("imitation", "DDP's default on our executor"),
        ("peer0", "PyTorch DDP, default"),
        ("peer", "PyTorch DDP, other buckets"),
    ):
        parts.append(f'<rect x="{x}" y="34" width="10" height="10" class="{kind}"/>')
        parts.append(text(x + 14, 43, words, "small"))
        x += 30 + 6 * len(words)
    return parts


def svg(results):
    """The picture as text; `results` must not be empty."""
    longest = max(system.seconds / result.bounds.per_layer_barrier for result in results for system in result.systems)
    scale = (PLOT_WIDTH - 130) / longest
    body, top = [], TOP
    for result in results:
        body += bars(result, top, scale)
        top += len(result.systems) * (BAR + BETWEEN_BARS) + BETWEEN_CASES
    bottom = top - BETWEEN_CASES + 6
    grid, multiple = [], 0.0
    while multiple <= longest:
        x = LEFT + multiple * scale
        grid.append(line(x, TOP - 6, x, bottom, "bound" if multiple == 1 else "grid"))
        grid.append(text(x, bottom + 14, f"{multiple:g}", "small", "middle"))
        multiple += 0.25
    x = LEFT + scale
    marks = [line(x, TOP - 6, x, bottom, "bound"), text(x, TOP - 9, "lower bound", "small boundtext", "middle")]
    width, height = LEFT + PLOT_WIDTH + RIGHT, bottom + BOTTOM
    title = text(LEFT, 20, "Iteration time over the lower bound", "title")
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:.0f}" viewBox="0 0 {width} {height:.0f}">',
            f"<style>{STYLE}</style>",
            title,
            *legend(),
            *grid,
            *body,
            *marks,
            "</svg>\n",
        ]
    )
