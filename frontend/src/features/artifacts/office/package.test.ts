import { deflateRawSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { OfficePackage } from "./package";

/** An archive with one part. */
function zip(name: string, content: Uint8Array, offset = 0): Uint8Array<ArrayBuffer> {
  const packed = deflateRawSync(content);
  const title = Buffer.from(name);
  const local = Buffer.alloc(30);
  local.writeUInt32LE(0x04034b50, 0);
  local.writeUInt16LE(title.length, 26);
  const entry = Buffer.alloc(46);
  entry.writeUInt32LE(0x02014b50, 0);
  entry.writeUInt16LE(8, 10);
  entry.writeUInt32LE(packed.length, 20);
  entry.writeUInt32LE(10, 24); // what it says of its size is a lie
  entry.writeUInt16LE(title.length, 28);
  entry.writeUInt32LE(offset, 42);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(46 + title.length, 12);
  end.writeUInt32LE(30 + title.length + packed.length, 16);
  return new Uint8Array(Buffer.concat([local, title, packed, entry, title, end]));
}

const fault = (work: () => unknown) => expect((async () => work())()).rejects;
const text = (content: string) => new TextEncoder().encode(content);

describe("a document", () => {
  test("is read part by part", async () => {
    const office = OfficePackage.open(zip("word/document.xml", text("<a><b>well</b></a>")));
    expect((await office.xml("word/document.xml"))?.textContent).toBe("well");
    expect(await office.xml("word/styles.xml")).toBeNull();
  });

  test("that unfolds into more than it says is left while it unfolds", async () => {
    const office = OfficePackage.open(zip("word/document.xml", new Uint8Array(64 << 20)));
    await fault(() => office.xml("word/document.xml")).toMatchObject({ fault: "tooLarge" });
  });

  test("with entities, of its own or from elsewhere, is refused", async () => {
    for (const head of [
      '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
      '<!DOCTYPE a SYSTEM "http://192.0.2.1/">',
    ]) {
      const office = OfficePackage.open(zip("word/document.xml", text(`${head}<a>&x;</a>`)));
      await fault(() => office.xml("word/document.xml")).toMatchObject({ fault: "damaged" });
    }
  });

  test("that is protected, old, cut off or leads out of itself says so", async () => {
    const name = [..."EncryptedPackage"].map((char) => `${char}\0`).join("");
    const sealed = text(`..${name}`);
    sealed.set([0xd0, 0xcf]);
    await fault(() => OfficePackage.open(sealed)).toMatchObject({ fault: "encrypted" });
    await fault(() => OfficePackage.open(new Uint8Array([0xd0, 0xcf, 1, 2]))).toMatchObject({ fault: "old" });
    const whole = zip("a.xml", text("<a/>"));
    await fault(() => OfficePackage.open(whole.slice(0, -30))).toMatchObject({ fault: "damaged" });
    await fault(() => OfficePackage.open(new Uint8Array())).toMatchObject({ fault: "damaged" });
    await fault(() => OfficePackage.open(zip("a.xml", text("<a/>"), 1 << 30))).toMatchObject({
      fault: "damaged",
    });
  });
});
