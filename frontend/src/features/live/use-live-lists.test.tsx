import { QueryClient, QueryClientProvider, useQuery } from "@tanstack/react-query";
import { act, render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { keys } from "@/lib/keys";
import { useLiveLists } from "./use-live-lists";

class Source {
  static newest: Source;
  onopen = () => {};
  constructor() {
    Source.newest = this;
  }
  close() {}
}

function List({ load }: { load: () => Promise<string> }) {
  useLiveLists();
  return <p>{useQuery({ queryKey: keys.threads, queryFn: load }).data}</p>;
}

test("a list that was read before the stream of notices opened is read again", async () => {
  vi.stubGlobal("EventSource", Source);
  let answer = (_text: string) => {};
  const load = vi
    .fn<() => Promise<string>>()
    .mockImplementationOnce(() => new Promise((done) => (answer = done)))
    .mockResolvedValue("as it is now");
  render(
    <QueryClientProvider client={new QueryClient()}>
      <List load={load} />
    </QueryClientProvider>,
  );
  await act(async () => {
    Source.newest.onopen();
    await Promise.resolve();
    answer("as it was before");
  });
  expect(await screen.findByText("as it is now")).toBeTruthy();
  expect(load).toHaveBeenCalledTimes(2);
});
