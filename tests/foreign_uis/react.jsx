// `useStream` of @langchain/react, which speaks the streaming protocol: no history, forks instead.
import { useMessageMetadata, useStream } from "@langchain/react";
import { apiKey, apiUrl, assistantId, Chat, show, useThreadId } from "./chat.jsx";

const human = (content) => ({ messages: [{ type: "human", content }] });

function Message({ chat, message }) {
  const forkFrom = useMessageMetadata(chat, message.id)?.parentCheckpointId;
  return (
    <li aria-label={message.type}>
      <span>{message.text}</span>
      {forkFrom && <button type="button" onClick={() => chat.submit(human(`${message.text} (edited)`), { forkFrom })}>Edit</button>}
    </li>
  );
}

function Page() {
  const [threadId, onThreadId] = useThreadId();
  const chat = useStream({ apiUrl, apiKey, assistantId, threadId, onThreadId });
  const { messages, interrupt, isLoading, error } = chat;
  return (
    <Chat
      {...{ interrupt, isLoading, error }}
      send={(text) => chat.submit(human(text))}
      respond={(answer) => chat.respond(answer)}
      stop={() => chat.stop()}
    >
      {messages.map((message) => <Message key={message.id} {...{ chat, message }} />)}
    </Chat>
  );
}

show(<Page />);
