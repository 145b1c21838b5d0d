import { draftThreadId } from "./draft-thread";
import { readDraft, writeDraft } from "./drafts";
import { choose, type AgentChoice } from "./run-settings";

/** Prepares what this tab begins at `/chats`: who answers, and how the message begins. What was drafted there stays behind that. */
export function prepareChat({ agent, skill, text }: { agent?: AgentChoice; skill?: string; text?: string }) {
  const id = draftThreadId();
  if (agent) choose(id, { agent });
  const draft = readDraft(id, true);
  const rest = draft.text.trim() || text || "";
  const asked = skill ? `/${skill} ` : "";
  writeDraft(id, true, { ...draft, text: `${rest} `.startsWith(asked) ? rest : asked + rest });
}
