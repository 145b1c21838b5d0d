import { focusComposer } from "./compose";
import { openThread } from "./route";

/** Shows an empty conversation, ready to be written to. */
export function startChat() {
  openThread(null);
  requestAnimationFrame(focusComposer);
}
