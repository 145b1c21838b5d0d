import { createElement, Fragment, type CSSProperties, type ReactNode } from "react";
import { attribute, child, children, colour, OfficeError, reference, type OfficePackage } from "./package";

interface Style {
  name: string;
  basedOn: string;
  numbering: Element | undefined;
}

interface Reading {
  office: OfficePackage;
  relations: Awaited<ReturnType<OfficePackage["relations"]>>;
  styles: Map<string, Style>;
  /** The levels of a list, by its number. */
  lists: Map<string, Element[]>;
  /** How far each list has counted, by level. */
  counts: Map<string, number[]>;
}

/** The text of a document: headings, lists, tables, pictures, links. */
export async function readWord(office: OfficePackage): Promise<ReactNode> {
  const body = child(await office.xml("word/document.xml"), "body");
  if (!body) throw new OfficeError("damaged");
  const reading = {
    office,
    relations: await office.relations("word/document.xml"),
    styles: stylesOf(await office.xml("word/styles.xml")),
    lists: listsOf(await office.xml("word/numbering.xml")),
    counts: new Map<string, number[]>(),
  };
  return blocks(body, reading);
}

async function blocks(of: Element, reading: Reading): Promise<ReactNode> {
  const shown: ReactNode[] = [];
  for (const [key, one] of children(of).entries()) {
    if (one.localName === "p") shown.push(<Fragment key={key}>{await paragraph(one, reading)}</Fragment>);
    else if (one.localName === "tbl") shown.push(<Fragment key={key}>{await table(one, reading)}</Fragment>);
    else if (one.localName === "sdt") {
      const content = child(one, "sdtContent");
      if (content) shown.push(<Fragment key={key}>{await blocks(content, reading)}</Fragment>);
    }
  }
  return shown;
}

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
    reading,
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

async function inline(of: Element, reading: Reading): Promise<ReactNode> {
  switch (of.localName) {
    case "r":
      return <span style={formatOf(child(of, "rPr"))}>{await runs(of, reading)}</span>;
    case "t":
      return of.textContent;
    case "tab":
      return "\u2003";
    case "br":
      return <br />;
    case "hyperlink":
      return link(reading.relations.get(reference(of)), await runs(of, reading));
    case "ins":
    case "smartTag":
    case "sdtContent":
      return runs(of, reading);
    case "sdt":
      return runs(child(of, "sdtContent") ?? of, reading);
    case "drawing": {
      const blip = [...of.getElementsByTagName("*")].find(({ localName }) => localName === "blip");
      const url = await reading.office.picture(reading.relations.get(reference(blip, "embed"))?.target ?? "");
      const words = [...of.getElementsByTagName("*")].find(({ localName }) => localName === "docPr");
      return url && <img src={url} alt={words?.getAttribute("descr") ?? ""} />;
    }
    default:
      return null; // deleted text, comments, fields, whatever else runs or is not text
  }
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

function listsOf(root: Element | null): Map<string, Element[]> {
  const abstract = new Map(
    children(root, "abstractNum").map((one) => [attribute(one, "abstractNumId") ?? "", children(one, "lvl")]),
  );
  return new Map(
    children(root, "num").map((one) => [
      attribute(one, "numId") ?? "",
      abstract.get(attribute(child(one, "abstractNumId"), "val") ?? "") ?? [],
    ]),
  );
}

/** What stands before an entry of a list, and how deep it is. */
function markerOf(
  numbering: Element | undefined,
  { lists, counts }: Reading,
): { text: string; level: number } | null {
  const id = attribute(child(numbering, "numId"), "val") ?? "0";
  const level = Math.min(8, Math.max(0, Number(attribute(child(numbering, "ilvl"), "val")) || 0));
  const levels = lists.get(id);
  if (!levels) return null;
  const kind = attribute(child(levels[level], "numFmt"), "val") ?? "bullet";
  if (kind === "none") return null;
  if (kind === "bullet") return { text: "•", level };
  const counted = counts.get(id) ?? [];
  counts.set(id, [...Array.from({ length: level }, (_, n) => counted[n] ?? 1), (counted[level] ?? 0) + 1]);
  const text = attribute(child(levels[level], "lvlText"), "val") ?? `%${level + 1}.`;
  const letters = kind === "lowerLetter" || kind === "upperLetter";
  const number = (n: number) => {
    const value = counts.get(id)?.[n] ?? 1;
    if (!letters || n !== level) return String(value);
    return String.fromCharCode((kind === "lowerLetter" ? 97 : 65) + ((value - 1) % 26));
  };
  return { text: text.replace(/%(\d)/g, (_, n) => number(Number(n) - 1)), level };
}
