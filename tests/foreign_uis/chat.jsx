// The smallest interface around a hook: what each `useStream` page shows.
import { useState } from "react";
import { createRoot } from "react-dom/client";

const query = new URLSearchParams(location.search);
export const apiUrl = query.get("apiUrl");
export const apiKey = query.get("apiKey");
export const assistantId = "lead_agent";

/** The open thread, kept in the address, so that a reload finds it. */
export function useThreadId() {
  const [threadId, setThreadId] = useState(query.get("threadId"));
  const remember = (id) => {
    setThreadId(id);
    query.set("threadId", id);
    history.replaceState(null, "", `?${query}`);
  };
  return [threadId, remember];
}

export const show = (page) => createRoot(document.body.appendChild(document.createElement("main"))).render(page);

/** Messages in order (`children`), a question that waits, a line to write in. */
export function Chat({ children, interrupt, isLoading, error, send, respond, stop }) {
  const [text, setText] = useState("");
  const submit = (event) => {
    event.preventDefault();
    setText("");
    if (interrupt?.value) respond(text); // without a value: the run was stopped between two steps
    else send(text);
  };
  return (
    <form onSubmit={submit}>
      <ol>{children}</ol>
      {interrupt?.value && <p role="alert">{JSON.stringify(interrupt.value)}</p>}
      {error && <p role="alert">{String(error?.message ?? error)}</p>}
      <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
      <button>Send</button>
      {isLoading && (
        <button type="button" onClick={stop}>
          Stop
        </button>
      )}
    </form>
  );
}
