"use client";
import { useQuery } from "@tanstack/react-query";
import type { components } from "./api-types";
import { http } from "./http";
import { keys } from "./keys";

export type Skill = components["schemas"]["SkillInfo"];

/** Description in the language of the page, if its author wrote one in that. */
export const aboutSkill = ({ description, description_zh }: Skill, locale: string) =>
  (locale === "zh" && description_zh) || description;

/** All skills that the person has, by name. */
export const useSkills = (enabled = true) =>
  useQuery({
    queryKey: keys.skills,
    queryFn: async () => (await http.get<{ skills: Skill[] }>("/api/skills")).skills,
    enabled,
  });

type Prompt = components["schemas"]["McpPrompt"];

/** Prompts of MCP servers that a message can call. */
export const usePrompts = (enabled = true) =>
  useQuery({
    queryKey: keys.prompts,
    queryFn: async () => (await http.get<{ prompts: Prompt[] }>("/api/mcp/prompts")).prompts,
    enabled,
  });
