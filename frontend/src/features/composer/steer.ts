import type { Outgoing, RunSettings, Session } from "@/features/chat";
import { ApiError } from "@/lib/http";

/** Tells the run that is going on; false if it has ended meanwhile. */
export async function steered(session: Session, text: string): Promise<boolean> {
  try {
    await session.steer(text);
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.code === "not_running") return false;
    throw error;
  }
}

/** As `steered`, else a message of its own. Files cannot be steered. */
export async function steerOrSend(
  session: Session,
  message: Outgoing,
  settings: RunSettings,
): Promise<boolean> {
  if (!message.files?.length && (await steered(session, message.text))) return true;
  await session.send(message, settings);
  return false;
}
