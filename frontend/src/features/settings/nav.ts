import { about } from "./about/section";
import { account } from "./account/section";
import { agents } from "./agents/section";
import { appearance } from "./appearance/section";
import { approvals } from "./approvals/section";
import { channels } from "./channels/section";
import { instructions } from "./instructions/section";
import { mcp } from "./mcp/section";
import { memory } from "./memory/section";
import { models } from "./models/section";
import { notifications } from "./notifications/section";
import { sandbox } from "./sandbox/section";
import { skills } from "./skills/section";
import { tokens } from "./tokens/section";
import { usage } from "./usage/section";
import { users } from "./users/section";

/** All sections in their order. */
export const SECTIONS = [
  account,
  appearance,
  notifications,
  tokens,
  approvals,
  instructions,
  memory,
  skills,
  agents,
  mcp,
  channels,
  usage,
  models,
  sandbox,
  users,
  about,
];
