"use client";
import { queryOptions, useQuery } from "@tanstack/react-query";
import type { components } from "./api-types";
import { http, ApiError } from "./http";
import { keys } from "./keys";

export type Agent = components["schemas"]["Agent"];

async function agents(): Promise<Agent[]> {
  try {
    return (await http.get<{ agents: Agent[] }>("/api/agents")).agents;
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return []; // switched off in the configuration
    throw error;
  }
}

export const agentsQuery = queryOptions({ queryKey: keys.agents, queryFn: agents, staleTime: 60_000 });

/** The person's own agents and those that everybody has; the same answer for all who ask. */
export const useAgents = () => useQuery(agentsQuery);
