// assistant-ui with its LangGraph runtime: threads, checkpoints and questions as its guide has them.
import { AssistantRuntimeProvider, ActionBarPrimitive, ComposerPrimitive, MessagePrimitive, ThreadListItemPrimitive, ThreadListPrimitive, ThreadPrimitive } from "@assistant-ui/react";
import { unstable_createLangGraphStream, useLangGraphInterruptState, useLangGraphRuntime, useLangGraphSendCommand } from "@assistant-ui/react-langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { apiKey, apiUrl, assistantId, show } from "./chat.jsx";

const client = new Client({ apiUrl, apiKey });
const asItem = ({ thread_id, values }) => ({ status: "regular", remoteId: thread_id, externalId: thread_id, title: values?.title });

const threads = {
  list: async () => ({ threads: (await client.threads.search({ metadata: { graph_id: assistantId }, limit: 100 })).map(asItem) }),
  initialize: async () => asItem(await client.threads.create()),
  fetch: async (id) => asItem(await client.threads.get(id)),
  rename: async () => {},
  archive: async () => {},
  unarchive: async () => {},
  delete: (id) => client.threads.delete(id),
  generateTitle: async () => new ReadableStream({ start: (stream) => stream.close() }),
};

/** The checkpoint at which the thread held these messages and nothing more. */
async function getCheckpointId(threadId, messages) {
  const ids = JSON.stringify(messages.map((message) => message.id));
  const states = await client.threads.getHistory(threadId);
  return states.find((state) => JSON.stringify((state.values.messages ?? []).map((message) => message.id)) === ids)?.checkpoint.checkpoint_id ?? null;
}

async function load(threadId) {
  const { values, tasks } = await client.threads.getState(threadId);
  return { messages: values.messages ?? [], interrupts: tasks.flatMap((task) => task.interrupts) };
}

const Human = () => (
  <MessagePrimitive.Root role="listitem" aria-label="human">
    <MessagePrimitive.Parts />
    <ActionBarPrimitive.Edit>Edit</ActionBarPrimitive.Edit>
  </MessagePrimitive.Root>
);

const Ai = () => (
  <MessagePrimitive.Root role="listitem" aria-label="ai">
    <MessagePrimitive.Parts components={{ tools: { Fallback: ({ toolName, result }) => <code>{`${toolName}: ${result ?? ""}`}</code> } }} />
    <ActionBarPrimitive.Reload>Again</ActionBarPrimitive.Reload>
  </MessagePrimitive.Root>
);

const Editor = () => (
  <ComposerPrimitive.Root>
    <ComposerPrimitive.Input aria-label="Edited" />
    <ComposerPrimitive.Send>Save</ComposerPrimitive.Send>
  </ComposerPrimitive.Root>
);

function Question() {
  const interrupt = useLangGraphInterruptState();
  const sendCommand = useLangGraphSendCommand();
  if (!interrupt) return null;
  return (
    <p role="alert">
      {JSON.stringify(interrupt.value)} <button onClick={() => sendCommand({ resume: "yes" })}>Yes</button>
    </p>
  );
}

function Page() {
  const stream = unstable_createLangGraphStream({ client, assistantId });
  const runtime = useLangGraphRuntime({ stream, load, getCheckpointId, unstable_allowCancellation: true, unstable_threadListAdapter: threads });
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <ThreadListPrimitive.Root>
        <ThreadListPrimitive.New>New</ThreadListPrimitive.New>
        <ThreadListPrimitive.Items
          components={{
            ThreadListItem: () => (
              <ThreadListItemPrimitive.Root>
                <ThreadListItemPrimitive.Trigger>
                  Thread <ThreadListItemPrimitive.Title />
                </ThreadListItemPrimitive.Trigger>
              </ThreadListItemPrimitive.Root>
            ),
          }}
        />
      </ThreadListPrimitive.Root>
      <ThreadPrimitive.Root>
        <ThreadPrimitive.Messages components={{ UserMessage: Human, AssistantMessage: Ai, UserEditComposer: Editor }} />
        <Question />
        <ComposerPrimitive.Root>
          <ComposerPrimitive.Input aria-label="Message" />
          <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>
          <ComposerPrimitive.Cancel>Stop</ComposerPrimitive.Cancel>
        </ComposerPrimitive.Root>
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}

show(<Page />);
