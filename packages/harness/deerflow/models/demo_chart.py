"""What the demo model runs in the sandbox when matplotlib is there: a bar chart. Stands alone, like demo_analysis."""

import importlib
import json
import sys

importlib.import_module("matplotlib").use("Agg")
plt = importlib.import_module("matplotlib.pyplot")

# A dollar sign would begin a formula.
title, target, pairs = sys.argv[1].replace("$", r"\$"), sys.argv[2], json.loads(sys.argv[3])
names, values = [pair[0].replace("$", r"\$") for pair in pairs], [pair[1] for pair in pairs]
figure, axes = plt.subplots(figsize=(8, 0.5 * len(pairs) + 1.6), dpi=130)
bars = axes.barh(names[::-1], values[::-1], color="#4f6df5", height=0.62)
axes.bar_label(bars, fmt="{:,.6g}", padding=4, fontsize=9)
axes.set_title(title, loc="left", fontsize=12, fontweight="bold", pad=12)
axes.spines[["top", "right", "left"]].set_visible(False)
axes.tick_params(axis="y", length=0)
axes.xaxis.grid(True, alpha=0.25)
axes.margins(x=0.12)
figure.tight_layout()
figure.savefig(target)
sys.stdout.write("DEMO-CHART " + target + "\n")
