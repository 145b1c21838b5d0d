import type * as agents from "./agents";
import { artifacts } from "./artifacts";
import { auth } from "./auth";
import type * as channels from "./channels";
import { chat } from "./chat";
import { common } from "./common";
import { composer } from "./composer";
import type * as decisions from "./decisions";
import type * as details from "./details";
import { markdown } from "./markdown";
import type * as mcp from "./mcp";
import { palette } from "./palette";
import type * as runs from "./runs";
import type * as sandbox from "./sandbox";
import { sections } from "./sections";
import type * as server from "./server";
import type * as settings from "./settings";
import type * as skills from "./skills";
import type * as tasks from "./tasks";
import { threads } from "./threads";
import type * as viewers from "./viewers";
import type * as voice from "./voice";
import type * as web from "./web";

export const en = { artifacts, auth, chat, common, composer, markdown, palette, sections, threads };
/** What comes with the part of the page that shows it. */
export type LateMessages = typeof agents &
  typeof channels &
  typeof decisions &
  typeof details &
  typeof mcp &
  typeof runs &
  typeof sandbox &
  typeof server &
  typeof settings &
  typeof skills &
  typeof tasks &
  typeof viewers &
  typeof voice &
  typeof web;
export type Messages = typeof en & LateMessages;
