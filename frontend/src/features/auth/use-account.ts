"use client";
import { useQuery, type QueryClient } from "@tanstack/react-query";
import { ApiError, csrfToken } from "@/lib/http";
import { keys } from "@/lib/keys";
import { isUnauthenticated } from "./guard";
import { me, setupStatus } from "./wire";

const RETRY_MS = 3000;

/** Ask again while the server gives no account for any reason other than a missing session. */
const untilAnswered = (query: { state: { error: unknown; data: unknown } }) =>
  query.state.error && !query.state.data && !isUnauthenticated(query.state.error) ? RETRY_MS : false;

/** Without the session cookie there is no session: a refused request would only appear in the browser's console. */
async function visitor({ client }: { client: QueryClient }) {
  if (!csrfToken()) {
    const status = await client.fetchQuery({ queryKey: keys.setup, queryFn: setupStatus });
    if (status.authentication) throw new ApiError("", 401, "unauthenticated");
  }
  return me();
}

/** The current account; one request serves all callers. */
export const useAccount = () =>
  useQuery({ queryKey: keys.me, queryFn: visitor, retry: false, refetchInterval: untilAnswered });

export const useSetupStatus = (enabled = true) =>
  useQuery({
    queryKey: keys.setup,
    queryFn: setupStatus,
    enabled,
    retry: false,
    refetchInterval: untilAnswered,
  });
