"use client";
import { useQuery } from "@tanstack/react-query";
import type { components } from "./api-types";
import { http, ApiError } from "./http";
import { keys } from "./keys";

export type Agent = components["schemas"]["Agent"];

const NONE: Agent[] = [];

/** Display name of an agent, in any script; its name is an id. */
export const titleOf = ({ display_name, name }: Agent) => display_name || name;

/** The person's own agents and those that everybody has. `off`: the configuration switches them off; then there are none. */
export function useAgents() {
  const { data, error, refetch } = useQuery({
    queryKey: keys.agents,
    queryFn: async () => (await http.get<{ agents: Agent[] }>("/api/agents")).agents,
  });
  const off = error instanceof ApiError && error.status === 403;
  return { data: off ? NONE : data, error, refetch, off };
}
