"""A plot of bench rows as SVG: TFLOP/s against size, a line for each kernel; at one size, bars."""

from html import escape

from tirxlab.explain.picture.svg import box, number

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 760, 420, 60, 40, 60
COLOURS = ("#444444", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#7f7f7f")


def svg(record: dict) -> str:
    """The plot of a record of `./lab bench`."""
    rows = record["rows"]
    top = max(row["tflops"] for row in rows) * 1.1
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    draw = bars if len(sizes) == 1 else curves
    title = f"{record['track']}: TFLOP/s, sustained, {record['gpu']}"
    parts = [text(LEFT, 22, title, 'font-size="15"'), *axis(top), *draw(rows, sizes, top)]
    head = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11"'
    back = '<rect width="100%" height="100%" fill="white"/>'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {head}>', back, *parts, "</svg>\n"])


def text(x: float, y: float, what: str, more: str = "") -> str:
    """A text element; `more`: further attributes."""
    return f'<text x="{number(x)}" y="{number(y)}"{more and " " + more}>{escape(what)}</text>'


def height(value: float, top: float) -> float:
    """The y coordinate of a value."""
    return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)


def axis(top: float) -> list[str]:
    """Horizontal lines every 100 TFLOP/s."""
    heights = {value: height(value, top) for value in range(0, int(top) + 1, 100)}
    lines = "".join(f"M{LEFT} {number(y)}H{WIDTH - 10}" for y in heights.values())
    labels = [text(LEFT - 6, y + 4, str(value)) for value, y in heights.items()]
    return [f'<path d="{lines}" stroke="#ddd"/>', '<g text-anchor="end">', *labels, "</g>"]


def name_of(row: dict) -> str:
    return f"{row['rung']} {row['kernel'].removeprefix('build_gemm_')}" if row["rung"] else row["kernel"]


def bars(rows: list[dict], sizes: list[str], top: float) -> list[str]:
    step = (WIDTH - LEFT - 20) / len(rows)
    boxes = {COLOURS[0]: "", COLOURS[1]: ""}  # of the library, of the rungs
    speeds, names = [], []
    for i, row in enumerate(rows):
        x, y = LEFT + 6 + i * step, height(row["tflops"], top)
        boxes[COLOURS[row["rung"] is not None]] += box(x, y, step * 0.75, height(0, top) - y)
        speeds.append(text(x + step * 0.375, y - 4, f"{row['tflops']:.0f}"))
        names.append(text(x + step * 0.375, HEIGHT - BOTTOM + 16, name_of(row)))
    bars = [f'<path d="{path}" fill="{colour}"/>' for colour, path in boxes.items() if path]
    said = ['<g text-anchor="middle">', *speeds, '<g font-size="10">', *names, "</g>", "</g>"]
    return [text(LEFT, HEIGHT - 8, f"size {sizes[0]}"), *bars, *said]


def curves(rows: list[dict], sizes: list[str], top: float) -> list[str]:
    step = (WIDTH - LEFT - 180) / max(1, len(sizes) - 1)
    places = {size: LEFT + 20 + i * step for i, size in enumerate(sizes)}
    made = [text(x, HEIGHT - BOTTOM + 18, size, 'text-anchor="middle"') for size, x in places.items()]
    for i, name in enumerate(dict.fromkeys(map(name_of, rows))):
        colour = COLOURS[i % len(COLOURS)]
        points = [(places[row["size"]], height(row["tflops"], top)) for row in rows if name_of(row) == name]
        line = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        made.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        made += [f'<circle cx="{number(x)}" cy="{number(y)}" r="3" fill="{colour}"/>' for x, y in points]
        y = TOP + 14 * i
        made.append(f'<path d="{box(WIDTH - 130, y - 8, 10, 10)}" fill="{colour}"/>')
        made.append(text(WIDTH - 115, y + 1, name))
    return made
