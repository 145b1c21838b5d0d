// `useStream` of @langchain/langgraph-sdk/react, with all that it offers: history, branches, joining after a reload.
import { useStream } from "@langchain/langgraph-sdk/react";
import { apiKey, apiUrl, assistantId, Chat, show, useThreadId } from "./chat.jsx";

const human = (content) => ({ messages: [{ type: "human", content }] });

function Page() {
  const [threadId, onThreadId] = useThreadId();
  const chat = useStream({ apiUrl, apiKey, assistantId, threadId, onThreadId, reconnectOnMount: true, fetchStateHistory: true });
  const { messages, interrupt, isLoading, error } = chat;
  // On an older branch the hook goes on there, but shows the newest one afterwards, unless it gets the checkpoint.
  const shown = chat.branch ? chat.history.at(-1)?.checkpoint : undefined;
  return (
    <Chat
      {...{ interrupt, isLoading, error }}
      send={(text) => chat.submit(human(text), { streamMode: ["updates"], checkpoint: shown })}
      respond={(resume) => chat.submit(undefined, { command: { resume } })}
      stop={() => chat.stop()}
    >
      {messages.map((message) => {
        const known = chat.getMessagesMetadata(message);
        const checkpoint = known?.firstSeenState?.parent_checkpoint;
        return (
          <li key={message.id} aria-label={message.type}>
            <span>{message.content}</span>
            {message.type === "human" && <button type="button" onClick={() => chat.submit(human(`${message.content} (edited)`), { checkpoint })}>Edit</button>}
            {message.type === "ai" && <button type="button" onClick={() => chat.submit(undefined, { checkpoint })}>Again</button>}
            {known?.branchOptions?.map((branch, index) => (
              <button key={branch} type="button" aria-pressed={branch === known.branch} onClick={() => chat.setBranch(branch)}>
                Branch {index + 1}
              </button>
            ))}
          </li>
        );
      })}
    </Chat>
  );
}

show(<Page />);
