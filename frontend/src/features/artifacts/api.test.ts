import { describe, expect, it } from "vitest";
import { decoded } from "./api";

describe("decoded", () => {
  it("reads a text in the encoding that the server names", () => {
    // 城市,1 in GB18030
    const bytes = new Uint8Array([0xb3, 0xc7, 0xca, 0xd0, 0x2c, 0x31]);
    expect(decoded([bytes.slice(0, 3), bytes.slice(3)], "gb18030")).toBe("城市,1");
  });

  it("trusts a mark of the bytes more, and falls back to UTF-8", () => {
    expect(decoded([new Uint8Array([0xff, 0xfe, 0x61, 0])], "windows-1252")).toBe("a");
    expect(decoded([new TextEncoder().encode("ü")], "utf-32")).toBe("ü");
  });
});
