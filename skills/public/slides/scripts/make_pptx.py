"""Make a PowerPoint presentation from an outline in JSON: real layouts, native charts and tables, notes."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from deck import BOTTOM, LEFT, TOP, WIDTH, fit, new_deck, number_slide
from PIL import Image
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.dml.color import MSO_THEME_COLOR
from pptx.enum.chart import XL_CHART_TYPE, XL_LABEL_POSITION, XL_LEGEND_POSITION
from pptx.enum.shapes import MSO_SHAPE
from pptx.enum.text import MSO_ANCHOR, PP_ALIGN
from pptx.util import Inches, Pt

CHARTS = {
    "bar": XL_CHART_TYPE.BAR_CLUSTERED,
    "column": XL_CHART_TYPE.COLUMN_CLUSTERED,
    "stacked": XL_CHART_TYPE.COLUMN_STACKED,
    "percent": XL_CHART_TYPE.COLUMN_STACKED_100,
    "line": XL_CHART_TYPE.LINE_MARKERS,
    "area": XL_CHART_TYPE.AREA_STACKED,
    "pie": XL_CHART_TYPE.PIE,
    "donut": XL_CHART_TYPE.DOUGHNUT,
    "scatter": XL_CHART_TYPE.XY_SCATTER,
}
ACCENTS = [getattr(MSO_THEME_COLOR, f"ACCENT_{index}") for index in range(1, 7)]


class OutlineError(ValueError):
    """The outline cannot become slides; says which slide and why."""


class Maker:
    """Makes the slides of one outline. ``base``: where relative paths of pictures start."""

    def __init__(self, outline: dict[str, Any], base: Path) -> None:
        self.base = base
        self.deck, self.layouts = new_deck(outline.get("theme", {}))
        self.deck.core_properties.title = outline.get("title", "")
        self.deck.core_properties.author = outline.get("author", "")
        kinds = {name.removeprefix("slide_"): getattr(self, name) for name in dir(self) if name.startswith("slide_")}
        for number, slide in enumerate(outline.get("slides", []), 1):
            kind = slide.get("layout", "bullets")
            if kind not in kinds:
                raise OutlineError(f"slide {number}: {kind!r} is not one of {', '.join(sorted(kinds))}")
            try:
                made = kinds[kind](slide)
            except KeyError as error:
                raise OutlineError(f"slide {number} ({kind}) needs {error.args[0]!r}") from None
            if slide.get("notes"):
                made.notes_slide.notes_text_frame.text = slide["notes"]
            if kind not in ("title", "section"):
                number_slide(made)
            if slide.get("source"):
                self._text(made, slide["source"], LEFT, 6.85, 10, 0.4, 11, MSO_THEME_COLOR.ACCENT_6)

    def _new(self, layout: str, slide: dict[str, Any]):
        made = self.deck.slides.add_slide(self.layouts[layout])
        if made.shapes.title is not None:
            made.shapes.title.text = slide.get("title", "")
        return made

    def _text(
        self, slide, text: str, left: float, top: float, width: float, height: float, size: float, color, **form: Any
    ):
        frame = slide.shapes.add_textbox(Inches(left), Inches(top), Inches(width), Inches(height)).text_frame
        frame.word_wrap = True
        frame.vertical_anchor = form.get("anchor", MSO_ANCHOR.TOP)
        for index, line in enumerate(str(text).split("\n")):
            paragraph = frame.paragraphs[0] if index == 0 else frame.add_paragraph()
            paragraph.alignment = form.get("align", PP_ALIGN.LEFT)
            run = paragraph.add_run()
            run.text, run.font.size, run.font.bold = line, Pt(size), form.get("bold", False)
            run.font.color.theme_color = color
        return frame

    def _bullets(self, placeholder, bullets: list[Any], level: int = 0, first: bool = True) -> bool:
        """Lines of a placeholder; a list in the list goes one level deeper, ``**words**`` are bold."""
        frame = placeholder.text_frame
        for bullet in [bullets] if isinstance(bullets, str) else bullets:
            if isinstance(bullet, list):
                first = self._bullets(placeholder, bullet, level + 1, first)
                continue
            paragraph = frame.paragraphs[0] if first else frame.add_paragraph()
            paragraph.level, first = level, False
            for index, part in enumerate(str(bullet).split("**")):
                if part:
                    run = paragraph.add_run()
                    run.text = part
                    if index % 2:
                        run.font.bold = True
        return first

    # kinds of slides ------------------------------------------------------------------------------------------------

    def slide_title(self, slide):
        made = self._new("title", slide)
        made.placeholders[1].text = slide.get("subtitle", "")
        return made

    def slide_section(self, slide):
        made = self._new("section", slide)
        made.placeholders[1].text = slide.get("subtitle", "")
        if not slide.get("subtitle"):
            self._drop(made.placeholders[1])
        return made

    def slide_bullets(self, slide):
        made = self._new("content", slide)
        self._bullets(made.placeholders[1], slide["bullets"])
        return made

    def slide_two(self, slide):
        made = self._new("two", slide)
        for index, side in ((1, "left"), (3, "right")):
            made.placeholders[index].text = slide[side].get("heading", "")
            self._bullets(made.placeholders[index + 1], slide[side]["bullets"])
        return made

    def slide_picture(self, slide):
        beside = slide.get("bullets") or slide.get("text")
        made = self._new("picture" if beside else "plain", slide)
        box = (LEFT, TOP, 7.3, 4.95) if beside else (LEFT, TOP, WIDTH, 4.95)
        path = Path(slide["picture"]) if Path(slide["picture"]).is_absolute() else self.base / slide["picture"]
        if not path.is_file():
            raise OutlineError(f"the picture {path} does not exist")
        with Image.open(path) as image:
            width, height = image.size
        picture = made.shapes.add_picture(str(path), *fit(width, height, *box))
        picture._element.nvPicPr.cNvPr.set("descr", slide.get("alt", slide.get("title", "")))
        if beside:
            self._drop(made.placeholders[1])
            self._bullets(made.placeholders[2], beside)
        return made

    def slide_chart(self, slide):
        beside = slide.get("bullets")
        made = self._new("picture" if beside else "plain", slide)
        width = 7.3 if beside else WIDTH
        self._chart(made, slide["chart"], width)
        if beside:
            self._drop(made.placeholders[1])
            self._bullets(made.placeholders[2], beside)
        return made

    def slide_table(self, slide):
        made = self._new("plain", slide)
        rows = slide["rows"]
        columns, high = max(map(len, rows)), min(0.55, 4.9 / len(rows))
        frame = made.shapes.add_table(
            len(rows), columns, Inches(LEFT), Inches(TOP), Inches(WIDTH), Inches(high * len(rows))
        )
        lengths = [
            min(max(max(len(str(row[i])) if i < len(row) else 0 for row in rows), 5), 40) for i in range(columns)
        ]
        size = 16 if len(rows) <= 8 else 14 if len(rows) <= 11 else 12
        for i, length in enumerate(lengths):
            frame.table.columns[i].width = int(Inches(WIDTH) * length / sum(lengths))
        for r, row in enumerate(rows):
            frame.table.rows[r].height = Inches(high)
            for c in range(columns):
                cell = frame.table.cell(r, c)
                cell.text = str(row[c]) if c < len(row) else ""
                cell.vertical_anchor = MSO_ANCHOR.MIDDLE
                paragraph = cell.text_frame.paragraphs[0]
                paragraph.font.size, paragraph.font.bold = Pt(size), r == 0
                if (
                    c
                    and str(rows[-1][c] if c < len(rows[-1]) else "")
                    .lstrip("+-−$€£¥")
                    .replace(",", "")
                    .replace(".", "")
                    .rstrip("%KMB €")[:1]
                    .isdigit()
                ):
                    paragraph.alignment = PP_ALIGN.RIGHT
                cell.fill.solid()
                shade = (
                    MSO_THEME_COLOR.TEXT_2
                    if r == 0
                    else MSO_THEME_COLOR.BACKGROUND_2
                    if r % 2 == 0
                    else MSO_THEME_COLOR.BACKGROUND_1
                )
                cell.fill.fore_color.theme_color = shade
                paragraph.font.color.theme_color = MSO_THEME_COLOR.BACKGROUND_1 if r == 0 else MSO_THEME_COLOR.TEXT_1
        return made

    def slide_numbers(self, slide):
        made = self._new("plain", slide)
        numbers = slide["numbers"]
        gap = 0.35
        width = (WIDTH - gap * (len(numbers) - 1)) / len(numbers)
        for index, entry in enumerate(numbers):
            left = LEFT + index * (width + gap)
            card = made.shapes.add_shape(MSO_SHAPE.RECTANGLE, Inches(left), Inches(2.2), Inches(width), Inches(3.2))
            card.fill.solid()
            card.fill.fore_color.theme_color = MSO_THEME_COLOR.BACKGROUND_2
            card.line.fill.background()
            card.shadow.inherit = False
            size = 54 if len(str(entry["value"])) * 0.42 < width else 40
            self._text(
                made,
                entry["value"],
                left + 0.15,
                2.45,
                width - 0.3,
                1.2,
                size,
                ACCENTS[0],
                bold=True,
                anchor=MSO_ANCHOR.MIDDLE,
            )
            self._text(made, entry.get("label", ""), left + 0.15, 3.75, width - 0.3, 1.5, 18, MSO_THEME_COLOR.TEXT_1)
        return made

    def slide_quote(self, slide):
        made = self._new("quote", {"title": slide["text"]})
        made.placeholders[2].text = slide.get("by", "")
        return made

    def slide_steps(self, slide):
        made = self._new("plain", slide)
        steps, gap = slide["steps"], 0.25
        width = (WIDTH - gap * (len(steps) - 1)) / len(steps)
        line = made.shapes.add_shape(MSO_SHAPE.RECTANGLE, Inches(LEFT), Inches(2.66), Inches(WIDTH), Inches(0.05))
        line.fill.solid()
        line.fill.fore_color.theme_color = MSO_THEME_COLOR.BACKGROUND_2
        line.line.fill.background()
        for index, step in enumerate(steps):
            left = LEFT + index * (width + gap)
            dot = made.shapes.add_shape(MSO_SHAPE.OVAL, Inches(left), Inches(2.43), Inches(0.5), Inches(0.5))
            dot.fill.solid()
            dot.fill.fore_color.theme_color = ACCENTS[0]
            dot.line.fill.background()
            dot.text_frame.text = str(index + 1)
            dot.text_frame.paragraphs[0].alignment = PP_ALIGN.CENTER
            dot.text_frame.paragraphs[0].font.size = Pt(16)
            for side in ("left", "right", "top", "bottom"):
                setattr(dot.text_frame, f"margin_{side}", 0)
            self._text(made, step.get("when", ""), left - 0.1, 1.85, width, 0.5, 16, ACCENTS[1], bold=True)
            self._text(made, step["what"], left - 0.1, 3.1, width, 0.9, 18, MSO_THEME_COLOR.TEXT_2, bold=True)
            if step.get("text"):
                self._text(made, step["text"], left - 0.1, 4.0, width, 2.4, 16, MSO_THEME_COLOR.TEXT_1)
        return made

    def _chart(self, slide, spec: dict[str, Any], width: float) -> None:
        kind = spec.get("type", "column")
        if kind not in CHARTS:
            raise OutlineError(f"chart: {kind!r} is not one of {', '.join(CHARTS)}")
        data: Any = (
            XyChartData() if kind == "scatter" else CategoryChartData(number_format=spec.get("format", "General"))
        )
        if kind == "scatter":
            for name, points in spec["series"].items():
                series = data.add_series(name)
                for x, y in points:
                    series.add_data_point(x, y)
        else:
            data.categories = spec["categories"]
            for name, values in spec["series"].items():
                if len(values) != len(spec["categories"]):
                    raise OutlineError(
                        f"chart: {name!r} has {len(values)} values for {len(spec['categories'])} categories"
                    )
                data.add_series(name, values)
        place = (Inches(LEFT), Inches(TOP), Inches(width), Inches(BOTTOM - TOP))
        chart = slide.shapes.add_chart(CHARTS[kind], *place, data).chart
        chart.font.size = Pt(14)
        chart.has_title = False
        round_ones = kind in ("pie", "donut")
        chart.has_legend = len(spec["series"]) > 1 or round_ones
        if chart.has_legend:
            chart.legend.position = XL_LEGEND_POSITION.RIGHT if round_ones else XL_LEGEND_POSITION.TOP
            chart.legend.include_in_layout = False
        plot = chart.plots[0]
        if not round_ones:
            chart.value_axis.has_major_gridlines = True
            chart.value_axis.major_gridlines.format.line.color.theme_color = MSO_THEME_COLOR.BACKGROUND_2
            chart.value_axis.format.line.fill.background()
            if "format" in spec and kind != "percent":
                ticks = chart.value_axis.tick_labels
                ticks.number_format, ticks.number_format_is_linked = spec["format"], False
            chart.category_axis.format.line.color.theme_color = ACCENTS[5]
            if kind == "bar":
                chart.category_axis.reverse_order = True
                chart.value_axis.visible = False
                chart.value_axis.has_major_gridlines = False
        if kind in ("bar", "column", "stacked", "percent"):
            plot.gap_width = 60
            plot.overlap = 100 if kind in ("stacked", "percent") else -8
        for index, series in enumerate(plot.series):
            fill = series.format.line if kind == "line" else series.format.fill
            if kind == "line":
                fill.width, series.smooth = Pt(3), False
                series.marker.format.fill.solid()
                series.marker.format.fill.fore_color.theme_color = ACCENTS[index % 6]
                fill.color.theme_color = ACCENTS[index % 6]
            elif not round_ones and kind != "scatter":
                fill.solid()
                fill.fore_color.theme_color = ACCENTS[index % 6]
        if spec.get("labels", kind in ("bar", "pie", "donut") or (kind == "column" and len(spec["series"]) == 1)):
            plot.has_data_labels = True
            labels = plot.data_labels
            labels.font.size = Pt(14)
            if round_ones:
                labels.show_percentage, labels.show_value = True, False
                labels.font.color.theme_color = MSO_THEME_COLOR.BACKGROUND_1
            elif kind in ("bar", "column"):
                labels.position = XL_LABEL_POSITION.OUTSIDE_END
                labels.number_format, labels.number_format_is_linked = spec.get("format", "General"), False

    def _drop(self, shape) -> None:
        shape._element.getparent().remove(shape._element)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("outline", type=Path, help="a JSON file")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    try:
        outline = json.loads(options.outline.read_text("utf-8"))
        maker = Maker(outline, options.outline.absolute().parent)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    options.output.parent.mkdir(parents=True, exist_ok=True)
    maker.deck.save(str(options.output))
    print(f"{len(maker.deck.slides)} slides in {options.output}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
