// Deep Agents UI: its components, put together as its own page does.
import { Client } from "@langchain/langgraph-sdk";
import { ChatInterface, ChatProvider, ClientProvider, saveConfig, ThreadList } from "deep-agents-ui";
import { useQueryState } from "nuqs";
import { NuqsAdapter } from "nuqs/adapters/react";
import * as React from "react";
import { apiKey, apiUrl, assistantId as graphId, show } from "./chat.jsx";

globalThis.React = React; // the package takes it for given

function Page() {
  const [assistant, setAssistant] = React.useState(null);
  const [, setThreadId] = useQueryState("threadId");
  const reload = React.useRef();
  React.useEffect(() => {
    const found = new Client({ apiUrl, apiKey }).assistants.search({ graphId, limit: 100 });
    void found.then((all) => setAssistant(all.find((each) => each.metadata?.created_by === "system") ?? null));
  }, []);
  if (!assistant) return <p>Looking for the assistant</p>;
  saveConfig({ deploymentUrl: apiUrl, assistantId: assistant.assistant_id, langsmithApiKey: apiKey });
  return (
    <ClientProvider deploymentUrl={apiUrl} apiKey={apiKey}>
      <ThreadList onThreadSelect={setThreadId} onMutateReady={(mutate) => (reload.current = mutate)} />
      <ChatProvider activeAssistant={assistant} onHistoryRevalidate={() => reload.current?.()}>
        <section>
          <ChatInterface assistant={assistant} debugMode={location.hash === "#debug"} controls={null} skeleton={<p>Loading</p>} />
        </section>
      </ChatProvider>
    </ClientProvider>
  );
}

show(
  <NuqsAdapter>
    <Page />
  </NuqsAdapter>,
);
