/** Documents of Word, Excel and PowerPoint: archives of XML. Nothing in them is run, loaded from elsewhere or trusted. */

export type Fault = "tooLarge" | "encrypted" | "old" | "damaged";

/** Reason for which a document cannot be shown. */
export class OfficeError extends Error {
  constructor(readonly fault: Fault) {
    super(fault);
  }
}

/** Bytes of a file that is read at all, and bytes that its parts may have together and each when unpacked. */
export const MAX_FILE = 25 << 20;
const MAX_UNPACKED = 96 << 20;
const MAX_PART = 24 << 20;
const MAX_ENTRIES = 10_000;

interface Entry {
  method: number;
  packed: number;
  offset: number;
}

export class OfficePackage {
  private unpacked = 0;
  private readonly urls: string[] = [];

  private constructor(
    private readonly bytes: Uint8Array<ArrayBuffer>,
    private readonly entries: Map<string, Entry>,
  ) {}

  /** Raises OfficeError. */
  static open(bytes: Uint8Array<ArrayBuffer>): OfficePackage {
    if (bytes.length > MAX_FILE) throw new OfficeError("tooLarge");
    // The container of old formats, and of those that are protected with a password.
    if (bytes[0] === 0xd0 && bytes[1] === 0xcf) {
      const name = [..."EncryptedPackage"].map((char) => `${char}\0`).join("");
      throw new OfficeError(new TextDecoder("latin1").decode(bytes).includes(name) ? "encrypted" : "old");
    }
    try {
      return new OfficePackage(bytes, directory(bytes));
    } catch {
      throw new OfficeError("damaged");
    }
  }

  has = (name: string) => this.entries.has(name);

  async read(name: string): Promise<Uint8Array<ArrayBuffer>> {
    const entry = this.entries.get(name);
    if (!entry) throw new OfficeError("damaged");
    const view = new DataView(this.bytes.buffer, this.bytes.byteOffset);
    const start =
      entry.offset + 30 + view.getUint16(entry.offset + 26, true) + view.getUint16(entry.offset + 28, true);
    const packed = this.bytes.subarray(start, start + entry.packed);
    if (entry.method !== 0 && entry.method !== 8) throw new OfficeError("damaged");
    const source = new Blob([packed]).stream();
    const reader = (
      entry.method === 0 ? source : source.pipeThrough(new DecompressionStream("deflate-raw"))
    ).getReader();
    const pieces: Uint8Array<ArrayBuffer>[] = [];
    // What the archive says of sizes is not believed: a bomb is noticed while it unfolds.
    for (let size = 0; ;) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.length;
      this.unpacked += value.length;
      if (size > MAX_PART || this.unpacked > MAX_UNPACKED) {
        void reader.cancel().catch(() => {});
        throw new OfficeError("tooLarge");
      }
      pieces.push(value as Uint8Array<ArrayBuffer>);
    }
    return new Uint8Array(await new Blob(pieces).arrayBuffer());
  }

  /** A part as XML; null if there is none. */
  async xml(name: string): Promise<Element | null> {
    if (!this.has(name)) return null;
    const text = new TextDecoder().decode(await this.read(name));
    if (/<!(DOCTYPE|ENTITY)/i.test(text)) throw new OfficeError("damaged"); // no document of Office has them
    const root = new DOMParser().parseFromString(text, "application/xml").documentElement;
    if (!root || root.localName === "parsererror" || root.getElementsByTagName("parsererror").length > 0)
      throw new OfficeError("damaged");
    return root;
  }

  /** Targets of a part's relationships: paths in the archive by id, and addresses. */
  async relations(part: string): Promise<Map<string, { target: string; type: string; external: boolean }>> {
    const folder = part.split("/").slice(0, -1);
    const root = await this.xml([...folder, "_rels", `${part.split("/").at(-1)}.rels`].join("/"));
    return new Map(
      children(root, "Relationship").map((one) => {
        const external = one.getAttribute("TargetMode") === "External";
        const raw = one.getAttribute("Target") ?? "";
        const target = external ? raw : joined(folder, raw);
        return [
          one.getAttribute("Id") ?? "",
          { target, type: one.getAttribute("Type")?.split("/").at(-1) ?? "", external },
        ];
      }),
    );
  }

  /** The address of a picture in the archive, until `close`; null for formats that browsers do not draw. */
  async picture(name: string): Promise<string | null> {
    const type = PICTURES[name.split(".").at(-1)?.toLowerCase() ?? ""];
    if (!type || !this.has(name)) return null;
    const url = URL.createObjectURL(new Blob([await this.read(name)], { type }));
    this.urls.push(url);
    return url;
  }

  close = () => this.urls.forEach((url) => URL.revokeObjectURL(url));
}

const PICTURES: Record<string, string> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  bmp: "image/bmp",
};

/** The central directory of a ZIP archive. Raises RangeError where it leads out of the file. */
function directory(bytes: Uint8Array<ArrayBuffer>): Map<string, Entry> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let end = bytes.length - 22;
  while (end >= Math.max(0, bytes.length - 65_557) && view.getUint32(end, true) !== 0x06054b50) end--;
  if (view.getUint32(end, true) !== 0x06054b50) throw new RangeError("no directory");
  const count = view.getUint16(end + 10, true);
  if (count > MAX_ENTRIES) throw new RangeError("too many entries");
  const entries = new Map<string, Entry>();
  let at = view.getUint32(end + 16, true);
  for (let n = 0; n < count; n++) {
    if (view.getUint32(at, true) !== 0x02014b50) throw new RangeError("no entry here");
    const length = view.getUint16(at + 28, true);
    const name = new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + length));
    const offset = view.getUint32(at + 42, true);
    view.getUint32(offset, true); // within the file
    entries.set(name, {
      method: view.getUint16(at + 10, true),
      packed: view.getUint32(at + 20, true),
      offset,
    });
    at += 46 + length + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  }
  return entries;
}

function joined(folder: string[], target: string): string {
  const parts = target.startsWith("/") ? [] : [...folder];
  for (const part of target.split("/")) {
    if (part === "..") parts.pop();
    else if (part && part !== ".") parts.push(part);
  }
  return parts.join("/");
}

/** Elements right below, by their local name. */
export const children = (of: Element | null | undefined, name?: string): Element[] =>
  of ? [...of.children].filter((one) => !name || one.localName === name) : [];

/** The first element on the way down `names`. */
export const child = (of: Element | null | undefined, ...names: string[]): Element | undefined =>
  names.reduce<Element | undefined>((at, name) => children(at, name)[0], of ?? undefined);

/** An attribute by its local name, whatever its prefix. */
export const attribute = (of: Element | null | undefined, name: string): string | undefined =>
  of ? [...of.attributes].find((one) => one.localName === name)?.value : undefined;

/** A reference of the document to another part. */
export const reference = (of: Element | null | undefined, name = "id") =>
  [...(of?.attributes ?? [])].find(
    (one) => one.localName === name && /relationships$/.test(one.namespaceURI ?? ""),
  )?.value ?? "";

/** A colour that is one. */
export const colour = (value: string | undefined) =>
  value && /^[0-9a-f]{6}$/i.test(value) ? `#${value}` : undefined;
