import { createElement, Fragment, type CSSProperties, type ReactNode } from "react";
import { equation } from "./equation";
import { listsOf, markerOf } from "./numbering";
import { attribute, child, children, colour, OfficeError, reference, type OfficePackage } from "./package";
import { Aside, Box, NotDrawn, Notes, type Note } from "./word-parts";

interface Style {
  name: string;
  basedOn: string;
  numbering: Element | undefined;
}

interface Reading {
  office: OfficePackage;
  relations: Relations;
  styles: Map<string, Style>;
  /** The levels of a list, by its number. */
  lists: Map<string, Element[]>;
  /** Counters of each list, by level. */
  counts: Map<string, number[]>;
  /** Foot- and endnotes and comments that may be referred to, by kind and id. */
  notes: Map<string, Element>;
  /** Those that were, in the order of the text. */
  referred: Note[];
  /** Text boxes, which stand below the paragraph that holds them. */
  boxes: ReactNode[];
}

type Relations = Awaited<ReturnType<OfficePackage["relations"]>>;

const MAIN = "word/document.xml";

/** All text of a document: with its headers, footers, text boxes, equations, notes and comments; named is what cannot be shown. */
export async function readWord(office: OfficePackage): Promise<ReactNode> {
  const body = child(await office.xml(MAIN), "body");
  if (!body) throw new OfficeError("damaged");
  const reading: Reading = {
    office,
    relations: await office.relations(MAIN),
    styles: stylesOf(await office.xml("word/styles.xml")),
    lists: listsOf(await office.xml("word/numbering.xml")),
    counts: new Map<string, number[]>(),
    notes: await notesOf(office),
    referred: [],
    boxes: [],
  };
  const headers = await around(body, "header", reading);
  const text = await blocks(body, reading);
  const footers = await around(body, "footer", reading);
  return (
    <>
      {headers}
      {text}
      {footers}
      <Notes notes={reading.referred} />
    </>
  );
}

async function notesOf(office: OfficePackage): Promise<Map<string, Element>> {
  const found = new Map<string, Element>();
  for (const kind of ["footnote", "endnote", "comment"])
    for (const one of children(await office.xml(`word/${kind}s.xml`), kind))
      found.set(`${kind} ${attribute(one, "id")}`, one);
  return found;
}

/** The different headers or footers of all sections. */
async function around(body: Element, kind: "header" | "footer", reading: Reading): Promise<ReactNode> {
  const parts = [...body.getElementsByTagName("*")]
    .filter(({ localName }) => localName === `${kind}Reference`)
    .map((one) => reading.relations.get(reference(one))?.target ?? "");
  const seen = new Set([""]);
  const shown: ReactNode[] = [];
  for (const part of new Set(parts)) {
    const root = await reading.office.xml(part);
    const text = root?.textContent?.trim() ?? "";
    if (!root || seen.has(text)) continue;
    seen.add(text);
    const relations = await reading.office.relations(part);
    shown.push(
      <Aside key={part} name={kind}>
        {await blocks(root, { ...reading, relations })}
      </Aside>,
    );
  }
  return shown;
}

/** Elements that only wrap visible ones. */
const HOLDERS = ["sdtContent", "ins", "smartTag", "customXml", "moveTo"];

async function blocks(of: Element, reading: Reading): Promise<ReactNode> {
  const shown: ReactNode[] = [];
  for (const [key, one] of children(of).entries()) {
    const name = one.localName;
    if (name === "p") {
      const outer = reading.boxes;
      const boxes: ReactNode[] = (reading.boxes = []);
      const content = await paragraph(one, reading);
      reading.boxes = outer;
      shown.push(
        <Fragment key={key}>{content}</Fragment>,
        ...boxes.map((box, n) => <Box key={`${key} ${n}`}>{box}</Box>),
      );
    } else if (name === "tbl") shown.push(<Fragment key={key}>{await table(one, reading)}</Fragment>);
    else if (name === "sdt" || name === "AlternateContent" || HOLDERS.includes(name))
      shown.push(<Fragment key={key}>{await blocks(holderOf(one), reading)}</Fragment>);
  }
  return shown;
}

/**
 * The element that holds the content. Of alternatives the newer one: the fallback for older programs has less in
 * it.
 */
const holderOf = (of: Element): Element =>
  (of.localName === "sdt"
    ? child(of, "sdtContent")
    : of.localName === "AlternateContent"
      ? (child(of, "Choice") ?? child(of, "Fallback"))
      : of) ?? of;

async function paragraph(of: Element, reading: Reading): Promise<ReactNode> {
  const properties = child(of, "pPr");
  const chain = stylesUp(attribute(child(properties, "pStyle"), "val"), reading);
  const align = attribute(child(properties, "jc"), "val");
  const style: CSSProperties = { textAlign: align === "center" || align === "right" ? align : undefined };
  const content = await runs(of, reading);
  const level = chain.map(({ name }) => /^(?:heading (\d)|(title))$/i.exec(name)).find(Boolean);
  if (level) return createElement(`h${level[2] ? 1 : Math.min(6, Number(level[1]))}`, { style }, content);
  const marker = markerOf(
    child(properties, "numPr") ?? chain.find(({ numbering }) => numbering)?.numbering,
    reading.lists,
    reading.counts,
  );
  if (!marker) return <p style={style}>{content}</p>;
  return (
    <div className="flex gap-2" style={{ marginInlineStart: `${0.5 + marker.level * 1.5}em` }}>
      <span className="min-w-[1.25em] shrink-0 text-muted-foreground tabular-nums">{marker.text}</span>
      <div className="min-w-0">{content}</div>
    </div>
  );
}

async function table(of: Element, reading: Reading): Promise<ReactNode> {
  const rows: ReactNode[] = [];
  for (const [y, row] of children(of, "tr").entries()) {
    const cells: ReactNode[] = [];
    for (const [x, cell] of children(row, "tc").entries()) {
      const merged = child(cell, "tcPr", "vMerge");
      const goesOn = merged && attribute(merged, "val") !== "restart";
      const span = Number(attribute(child(cell, "tcPr", "gridSpan"), "val")) || 1;
      cells.push(
        <td key={x} colSpan={Math.min(span, 100)} className="border align-top">
          {goesOn ? null : await blocks(cell, reading)}
        </td>,
      );
    }
    rows.push(<tr key={y}>{cells}</tr>);
  }
  return (
    <div className="my-3 overflow-x-auto" tabIndex={0}>
      <table>
        <tbody>{rows}</tbody>
      </table>
    </div>
  );
}

async function runs(of: Element, reading: Reading): Promise<ReactNode> {
  const shown: ReactNode[] = [];
  for (const [key, one] of children(of).entries()) {
    const content = await inline(one, reading);
    if (content) shown.push(<Fragment key={key}>{content}</Fragment>);
  }
  return shown;
}

/** Elements that are never shown: settings, field codes, and fallbacks of alternatives. */
const SKIPPED =
  /Pr$|^(tabs|instrText|delInstrText|fldChar|Fallback|bookmark\w+|commentRange\w+|proofErr|annotationRef|footnoteRef|endnoteRef)$/;

async function inline(of: Element, reading: Reading): Promise<ReactNode> {
  const name = of.localName;
  switch (name) {
    case "r":
      return <span style={formatOf(child(of, "rPr"))}>{await runs(of, reading)}</span>;
    case "t":
    case "delText":
      return of.textContent;
    case "tab":
    case "ptab":
      return "\u2003";
    case "br":
    case "cr":
      return <br />;
    case "noBreakHyphen":
      return "\u2011";
    case "sym":
      return SYMBOLS[attribute(of, "char")?.toUpperCase() ?? ""] ?? "•";
    case "hyperlink":
      return link(reading.relations.get(reference(of)), await runs(of, reading));
    case "del":
    case "moveFrom":
      return <del className="text-muted-foreground">{await runs(of, reading)}</del>;
    case "ins":
    case "moveTo":
      return <ins>{await runs(of, reading)}</ins>;
    case "oMathPara":
    case "oMath":
      return equation(of, name === "oMathPara");
    case "footnoteReference":
    case "endnoteReference":
    case "commentReference":
      return mark(name.replace("Reference", ""), attribute(of, "id") ?? "", reading);
    case "drawing":
    case "pict":
    case "object":
      return drawing(of, reading);
    case "sdt":
    case "AlternateContent":
      return runs(holderOf(of), reading);
    default:
      return SKIPPED.test(name) ? null : runs(of, reading);
  }
}

/** Of the font Wingdings, which forms use. */
const SYMBOLS: Record<string, string> = { F0FE: "☒", F0A8: "☐", F06F: "☐", F0FC: "✓" };

/** A number in the text, which stands before the note or comment below it. */
async function mark(kind: string, id: string, reading: Reading): Promise<ReactNode> {
  const found = reading.notes.get(`${kind} ${id}`);
  if (!found) return null;
  reading.notes.delete(`${kind} ${id}`); // one that refers to itself would never end
  const at = reading.referred.push({
    kind: kind === "comment" ? "comment" : "note",
    author: attribute(found, "author") ?? "",
    content: null,
  });
  reading.referred[at - 1]!.content = await blocks(found, reading);
  return <sup className="text-primary">[{at}]</sup>;
}

/** A picture, boxes of text, or the name of what neither is. */
async function drawing(of: Element, reading: Reading): Promise<ReactNode> {
  const within = [...of.getElementsByTagName("*")];
  const boxes = within.filter(
    (one) =>
      one.localName === "txbxContent" && !up(one, of).some((at) => /^(txbxContent|Fallback)$/.test(at)),
  );
  for (const box of boxes) reading.boxes.push(await blocks(box, reading));
  const about = within.find(({ localName }) => localName === "docPr");
  const words = attribute(about, "descr") ?? "";
  const pictures = within.filter(({ localName }) => localName === "blip" || localName === "imagedata");
  const shown: ReactNode[] = [];
  for (const [key, one] of pictures.entries()) {
    const id = reference(one, "embed") || reference(one);
    const url = await reading.office.picture(reading.relations.get(id)?.target ?? "");
    shown.push(url ? <img key={key} src={url} alt={words} /> : <NotDrawn key={key} words={words} />);
  }
  if (shown.length > 0 || boxes.length > 0) return shown;
  const isLine = within.some(({ localName }) => /^(wsp|line|rect|shape)$/.test(localName)) && !words;
  return isLine ? null : <NotDrawn words={words} />;
}

/** The names of what an element stands in, up to `top`. */
function up(of: Element, top: Element): string[] {
  const names: string[] = [];
  for (let at = of.parentElement; at && at !== top; at = at.parentElement) names.push(at.localName);
  return names;
}

function link(to: { target: string; external: boolean } | undefined, content: ReactNode): ReactNode {
  if (!to?.external || !/^(https?:\/\/|mailto:)/i.test(to.target)) return content;
  return (
    <a href={to.target} target="_blank" rel="noopener noreferrer nofollow">
      {content}
    </a>
  );
}

function formatOf(properties: Element | undefined): CSSProperties | undefined {
  if (!properties) return undefined;
  const on = (name: string) => {
    const one = child(properties, name);
    return one && !/^(0|false|none)$/.test(attribute(one, "val") ?? "");
  };
  const lines = [on("u") && "underline", (on("strike") || on("dstrike")) && "line-through"].filter(Boolean);
  const shift = attribute(child(properties, "vertAlign"), "val");
  const paint = colour(attribute(child(properties, "color"), "val"));
  return {
    fontWeight: on("b") ? 620 : undefined,
    fontStyle: on("i") ? "italic" : undefined,
    textDecoration: lines.join(" ") || undefined,
    verticalAlign: shift === "superscript" ? "super" : shift === "subscript" ? "sub" : undefined,
    fontSize: shift && shift !== "baseline" ? "0.75em" : undefined,
    // Of a page that is white; in the dark it is brought nearer to the text.
    color: paint && paint !== "#000000" ? `color-mix(in oklch, ${paint} 60%, var(--foreground))` : undefined,
  };
}

function stylesOf(root: Element | null): Map<string, Style> {
  return new Map(
    children(root, "style").map((one) => [
      attribute(one, "styleId") ?? "",
      {
        name: attribute(child(one, "name"), "val") ?? "",
        basedOn: attribute(child(one, "basedOn"), "val") ?? "",
        numbering: child(one, "pPr", "numPr"),
      },
    ]),
  );
}

/** A style and those that it is based on. */
function stylesUp(id: string | undefined, { styles }: Reading): Style[] {
  const chain: Style[] = [];
  for (let one = styles.get(id ?? ""); one && chain.length < 12; one = styles.get(one.basedOn))
    chain.push(one);
  return chain;
}
