"""The structure of a kernel as facts and as SVG, read off its artifact and the record of a run.

`facts.structure(artifact, timeline)` collects them, `tiles.owners` asks the simulator which cluster writes
which tile, `draw.page` makes the picture. Nothing here knows the steps: any kernel of the lab can be drawn.
"""
