"use client";
import { useQuery, type QueryClient } from "@tanstack/react-query";
import { ApiError, csrfToken } from "@/lib/http";
import { keys } from "@/lib/keys";
import { isUnauthenticated } from "./guard";
import { me, setupStatus } from "./wire";

const RETRY_MS = 3000;

/** While the server gives no account for another reason than that nobody is signed in, it is asked again and again. */
const untilAnswered = (query: { state: { error: unknown; data: unknown } }) =>
  query.state.error && !query.state.data && !isUnauthenticated(query.state.error) ? RETRY_MS : false;

/** Without the cookie that comes with a session nobody is signed in: a refusal would only stand in the browser's console. */
async function visitor({ client }: { client: QueryClient }) {
  if (!csrfToken()) {
    const status = await client.fetchQuery({ queryKey: keys.setup, queryFn: setupStatus });
    if (status.authentication) throw new ApiError("", 401, "unauthenticated");
  }
  return me();
}

/** Who is signed in; the same answer for all who ask. */
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
