import { spawnSync } from "node:child_process";
import { PYTHON } from "./server";

const PACK = `
import io, json, sys, zipfile
out = io.BytesIO()
with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
    for name, text in json.load(sys.stdin).items():
        made.writestr(zipfile.ZipInfo(name), text)
sys.stdout.buffer.write(out.getvalue())
`;

export const skillText = (name: string, more = "", body = "Do it.") =>
  `---\nname: ${name}\ndescription: Made for ${name}.\n${more}---\n\n${body}\n`;

/** What a browser would pick: an archive with these texts, wherever their names lead. */
export function skillArchive(members: Record<string, string>) {
  const { stdout, stderr, status } = spawnSync(PYTHON, ["-c", PACK], { input: JSON.stringify(members) });
  if (status !== 0) throw new Error(String(stderr));
  return { name: "picked.skill", mimeType: "application/zip", buffer: stdout };
}
