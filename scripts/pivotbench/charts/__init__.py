"""Charts of a decision: Altair objects, and the same as HTML, SVG, PNG and Vega-Lite that stand alone."""
