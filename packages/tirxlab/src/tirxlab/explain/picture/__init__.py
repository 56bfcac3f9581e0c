"""The structure of a kernel as facts and as SVG, from its artifact and the record of a run.

`facts.structure(artifact, timeline)` collects the facts, `tiles.owners` runs the simulator to see which
cluster writes which tile, `draw.page` makes the picture. No code here depends on the steps: any kernel of the
lab can be drawn.
"""
