const MAX_ID = 64;

/** Proposes an id for an agent that people call `name`: `Éditeur` is `editeur`, 研究员 is `my-agent`, the second one `my-agent-2`. */
export function agentId(name: string, taken: readonly string[]): string {
  const plain = name.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const words = plain.replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
  const id = words.slice(0, MAX_ID - 3) || "my-agent";
  if (!taken.includes(id) || words === plain) return id;
  for (let number = 2; ; number++) if (!taken.includes(`${id}-${number}`)) return `${id}-${number}`;
}
