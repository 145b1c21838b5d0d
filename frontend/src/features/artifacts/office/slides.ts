import { attribute, child, children, colour, OfficeError, reference, type OfficePackage } from "./package";

export interface Run {
  text: string;
  bold: boolean;
  italic: boolean;
  /** Points. */
  size: number;
  colour?: string;
}

export interface Line {
  runs: Run[];
  align?: "center" | "right";
  bullet: boolean;
  level: number;
}

/** Something on a slide; places and sizes are parts of the slide's. */
export interface Shape {
  x: number;
  y: number;
  width: number;
  height: number;
  fill?: string;
  round: boolean;
  anchor: "start" | "center" | "end";
  lines: Line[];
  picture?: string;
  table?: Line[][][];
  /** It is something that is not drawn here. */
  foreign?: boolean;
}

export interface Slide {
  background: string;
  shapes: Shape[];
  /** Speaker notes, if there are any. */
  notes: string;
}

export interface Deck {
  /** Width and height in points. */
  width: number;
  height: number;
  slides: Slide[];
}

const POINT = 12_700;
const MAX_SLIDES = 300;

/** The slides of a presentation as they lie in it: text, pictures, tables and plain shapes at their places. */
export async function readSlides(office: OfficePackage): Promise<Deck> {
  const root = await office.xml("ppt/presentation.xml");
  if (!root) throw new OfficeError("damaged");
  const relations = await office.relations("ppt/presentation.xml");
  const size = child(root, "sldSz");
  const [width, height] = [
    Number(size?.getAttribute("cx")) || 9_144_000,
    Number(size?.getAttribute("cy")) || 6_858_000,
  ];
  const slides: Slide[] = [];
  for (const one of children(child(root, "sldIdLst"), "sldId").slice(0, MAX_SLIDES))
    slides.push(await slideAt(relations.get(reference(one))?.target ?? "", office, width, height));
  return { width: width / POINT, height: height / POINT, slides };
}

/** A slide, its layout or its master. */
interface Layer {
  root: Element;
  path: string;
  relations: Awaited<ReturnType<OfficePackage["relations"]>>;
}

interface Reading {
  office: OfficePackage;
  /** The slide, its layout, its master. */
  layers: Layer[];
  theme: Map<string, string>;
  width: number;
  height: number;
}

async function slideAt(path: string, office: OfficePackage, width: number, height: number): Promise<Slide> {
  const layers: Layer[] = [];
  let theme: Element | null = null;
  for (let next: string | undefined = path; next && layers.length < 3;) {
    const root: Element | null = await office.xml(next);
    if (!root) throw new OfficeError("damaged");
    const relations: Layer["relations"] = await office.relations(next);
    layers.push({ root, path: next, relations });
    const to = (type: string) => [...relations.values()].find((one) => one.type === type)?.target;
    theme = await office.xml(to("theme") ?? "");
    next = to("slideLayout") ?? to("slideMaster");
  }
  const reading = { office, layers, theme: coloursOf(theme), width, height };
  const painted = layers.map(({ root }) => child(root, "cSld", "bg", "bgPr", "solidFill")).find(Boolean);
  const shapes: Shape[] = [];
  for (const layer of [...layers].reverse())
    shapes.push(...(await shapesOf(child(layer.root, "cSld", "spTree"), layer, reading, (at) => at)));
  const background = fillOf(painted, reading) ?? reading.theme.get("bg1") ?? "#ffffff";
  return { background, shapes, notes: await notesOf(layers[0]!, office) };
}

/** The slide's picture, number and date stand on the page of notes, too. */
async function notesOf({ relations }: Layer, office: OfficePackage): Promise<string> {
  const page = [...relations.values()].find(({ type }) => type === "notesSlide")?.target;
  return children(child(await office.xml(page ?? ""), "cSld", "spTree"), "sp")
    .filter((shape) => child(shape, "nvSpPr", "nvPr", "ph")?.getAttribute("type") === "body")
    .flatMap((shape) => children(child(shape, "txBody"), "p"))
    .map((line) =>
      children(line)
        .map((run) => (run.localName === "br" ? "\n" : (child(run, "t")?.textContent ?? "")))
        .join(""),
    )
    .join("\n")
    .trim();
}

type Box = Pick<Shape, "x" | "y" | "width" | "height">;

async function shapesOf(
  tree: Element | undefined,
  layer: Layer,
  reading: Reading,
  place: (box: Box) => Box,
): Promise<Shape[]> {
  const shapes: Shape[] = [];
  for (const one of children(tree)) {
    const kind = one.localName;
    if (kind === "AlternateContent")
      shapes.push(...(await shapesOf(child(one, "Fallback") ?? child(one, "Choice"), layer, reading, place)));
    if (kind === "grpSp")
      shapes.push(...(await shapesOf(one, layer, reading, (box) => place(inGroup(one, box)))));
    if (!["sp", "pic", "graphicFrame", "cxnSp"].includes(kind)) continue;
    const holder = child(one, `nv${kind[0]!.toUpperCase()}${kind.slice(1)}Pr`, "nvPr", "ph");
    if (holder && layer !== reading.layers[0]) continue; // a layout's own are there to be filled
    const models = holder ? modelsOf(holder, reading) : [];
    const frame = [one, ...models].map((at) => child(at, "spPr", "xfrm") ?? child(at, "xfrm")).find(Boolean);
    if (!frame) continue;
    const box = place(boxOf(frame));
    const properties = child(one, "spPr");
    const shape: Shape = {
      x: box.x / reading.width,
      y: box.y / reading.height,
      width: box.width / reading.width,
      height: box.height / reading.height,
      fill: fillOf(child(properties, "solidFill"), reading),
      round: /ellipse|round/i.test(child(properties, "prstGeom")?.getAttribute("prst") ?? ""),
      anchor: anchorOf([one, ...models]),
      lines: linesOf(child(one, "txBody"), holder, models, reading),
    };
    if (kind === "pic") {
      const target = layer.relations.get(reference(child(one, "blipFill", "blip"), "embed"))?.target;
      shape.picture = (await reading.office.picture(target ?? "")) ?? undefined;
    }
    const rows = children(child(one, "graphic", "graphicData", "tbl"), "tr");
    if (rows.length > 0)
      shape.table = rows.map((row) =>
        children(row, "tc").map((cell) => linesOf(child(cell, "txBody"), undefined, [], reading)),
      );
    shape.foreign = (kind === "graphicFrame" && !shape.table) || (kind === "pic" && !shape.picture);
    shapes.push(shape);
  }
  return shapes;
}

function boxOf(frame: Element): Box {
  const [at, size] = [child(frame, "off"), child(frame, "ext")];
  const number = (of: Element | undefined, name: string) => Number(of?.getAttribute(name)) || 0;
  return { x: number(at, "x"), y: number(at, "y"), width: number(size, "cx"), height: number(size, "cy") };
}

/** From a group's own measure to that around it. */
function inGroup(group: Element, box: Box): Box {
  const frame = child(group, "grpSpPr", "xfrm");
  if (!frame) return box;
  const outer = boxOf(frame);
  const [at, size] = [child(frame, "chOff"), child(frame, "chExt")];
  const [sx, sy] = [
    outer.width / (Number(size?.getAttribute("cx")) || 1),
    outer.height / (Number(size?.getAttribute("cy")) || 1),
  ];
  return {
    x: outer.x + (box.x - (Number(at?.getAttribute("x")) || 0)) * sx,
    y: outer.y + (box.y - (Number(at?.getAttribute("y")) || 0)) * sy,
    width: box.width * sx,
    height: box.height * sy,
  };
}

/**
 * Properties that a placeholder inherits from layout and master: from the one of the same number, else of the
 * same type.
 */
function modelsOf(holder: Element, { layers }: Reading): Element[] {
  const [index, type] = [holder.getAttribute("idx"), holder.getAttribute("type") ?? "body"];
  const family = (one: string) => one.replace("ctrTitle", "title").replace("subTitle", "body");
  return layers.slice(1).flatMap(({ root }) => {
    const all = children(child(root, "cSld", "spTree"), "sp");
    const of = (one: Element) => child(one, "nvSpPr", "nvPr", "ph");
    return (
      all.find((one) => index !== null && of(one)?.getAttribute("idx") === index) ??
      all.find((one) => of(one) && family(of(one)!.getAttribute("type") ?? "body") === family(type)) ??
      []
    );
  });
}

function anchorOf(shapes: Element[]): Shape["anchor"] {
  const anchor = shapes.map((one) => child(one, "txBody", "bodyPr")?.getAttribute("anchor")).find(Boolean);
  return anchor === "ctr" ? "center" : anchor === "b" ? "end" : "start";
}

function linesOf(
  body: Element | undefined,
  holder: Element | undefined,
  models: Element[],
  reading: Reading,
): Line[] {
  const isTitle = /title/i.test(holder?.getAttribute("type") ?? "");
  const styles = child(
    reading.layers.at(-1)?.root,
    "txStyles",
    isTitle ? "titleStyle" : holder ? "bodyStyle" : "otherStyle",
  );
  return children(body, "p").map((paragraph) => {
    const own = child(paragraph, "pPr");
    const level = Math.min(8, Number(own?.getAttribute("lvl")) || 0);
    const name = `lvl${level + 1}pPr`;
    const chain = [
      own,
      ...[body, ...models.map((one) => child(one, "txBody"))].map((one) => child(one, "lstStyle", name)),
      child(styles, name),
    ];
    const first = (attribute: string) => chain.map((one) => one?.getAttribute(attribute)).find(Boolean);
    const align = first("algn");
    const mark = chain
      .flatMap((one) => children(one))
      .find(({ localName }) => /^bu(None|Char|AutoNum)$/.test(localName));
    const defaults = chain.map((one) => child(one, "defRPr"));
    const runs = children(paragraph).flatMap((run) => {
      if (run.localName === "br") return [{ text: "\n", bold: false, italic: false, size: 12 }];
      const text = child(run, "t")?.textContent;
      return text ? [runOf(text, [child(run, "rPr"), ...defaults], reading)] : [];
    });
    return {
      runs,
      level,
      align: align === "ctr" ? ("center" as const) : align === "r" ? ("right" as const) : undefined,
      bullet: !!holder && !isTitle && runs.length > 0 && mark !== undefined && mark.localName !== "buNone",
    };
  });
}

function runOf(text: string, chain: (Element | undefined)[], reading: Reading): Run {
  const first = (name: string) =>
    chain.map((one) => one && attribute(one, name)).find((value) => value !== undefined);
  const size = Number(first("sz")) / 100;
  return {
    text,
    bold: /^(1|true)$/.test(first("b") ?? ""),
    italic: /^(1|true)$/.test(first("i") ?? ""),
    size: Number.isFinite(size) ? Math.min(400, size) : 18,
    colour: chain.map((one) => fillOf(child(one, "solidFill"), reading)).find(Boolean),
  };
}

function fillOf(fill: Element | undefined, { theme }: Reading): string | undefined {
  const name = child(fill, "schemeClr")?.getAttribute("val") ?? "";
  return colour(child(fill, "srgbClr")?.getAttribute("val") ?? undefined) ?? theme.get(name);
}

function coloursOf(theme: Element | null): Map<string, string> {
  const colours = new Map<string, string>();
  for (const one of children(child(theme, "themeElements", "clrScheme"))) {
    const [of] = children(one);
    const value = colour(of?.getAttribute("lastClr") ?? of?.getAttribute("val") ?? undefined);
    if (value) colours.set(one.localName, value);
  }
  for (const [name, of] of [
    ["bg1", "lt1"],
    ["tx1", "dk1"],
    ["bg2", "lt2"],
    ["tx2", "dk2"],
  ] as const) {
    const value = colours.get(of);
    if (value) colours.set(name, value);
  }
  return colours;
}
