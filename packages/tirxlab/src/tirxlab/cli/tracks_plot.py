"""A plot of bench rows as SVG: TFLOP/s against size, a line for each kernel; at one size, bars."""

from html import escape

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 760, 420, 60, 40, 60
COLOURS = ("#444444", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#7f7f7f")


def svg(record: dict) -> str:
    """The plot of a record of `./lab bench`."""
    rows = record["rows"]
    top = max(row["tflops"] for row in rows) * 1.1
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    draw = bars if len(sizes) == 1 else curves
    title = f"{record['track']}: TFLOP/s, sustained, {record['gpu']}"
    parts = [text(LEFT, 22, title, 15), *axis(top), *draw(rows, sizes, top)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def text(x: float, y: float, what: str, size: int = 11, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(what)}</text>'


def height(value: float, top: float) -> float:
    """y of a value."""
    return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)


def axis(top: float) -> list[str]:
    """Horizontal lines every 100 TFLOP/s."""
    made = []
    for value in range(0, int(top) + 1, 100):
        y = height(value, top)
        made.append(f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
        made.append(text(LEFT - 6, y + 4, str(value), anchor="end"))
    return made


def name_of(row: dict) -> str:
    return f"{row['rung']} {row['kernel'].removeprefix('build_gemm_')}" if row["rung"] else row["kernel"]


def bars(rows: list[dict], sizes: list[str], top: float) -> list[str]:
    step = (WIDTH - LEFT - 20) / len(rows)
    made = [text(LEFT, HEIGHT - 8, f"size {sizes[0]}")]
    for i, row in enumerate(rows):
        x, y = LEFT + 6 + i * step, height(row["tflops"], top)
        colour = COLOURS[0] if row["rung"] is None else COLOURS[1]
        made.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{step * 0.75:.1f}" height="{height(0, top) - y:.1f}" '
            f'fill="{colour}"/>'
        )
        made.append(text(x + step * 0.375, y - 4, f"{row['tflops']:.0f}", anchor="middle"))
        made.append(text(x + step * 0.375, HEIGHT - BOTTOM + 16, name_of(row), 10, "middle"))
    return made


def curves(rows: list[dict], sizes: list[str], top: float) -> list[str]:
    step = (WIDTH - LEFT - 180) / max(1, len(sizes) - 1)
    at = {size: LEFT + 20 + i * step for i, size in enumerate(sizes)}
    made = [text(x, HEIGHT - BOTTOM + 18, size, anchor="middle") for size, x in at.items()]
    for i, name in enumerate(dict.fromkeys(map(name_of, rows))):
        colour = COLOURS[i % len(COLOURS)]
        points = [(at[row["size"]], height(row["tflops"], top)) for row in rows if name_of(row) == name]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        made.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        made += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        y = TOP + 14 * i
        made.append(f'<rect x="{WIDTH - 130}" y="{y - 8}" width="10" height="10" fill="{colour}"/>')
        made.append(text(WIDTH - 115, y + 1, name))
    return made
