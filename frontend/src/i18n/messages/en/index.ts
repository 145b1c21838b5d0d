import { artifacts } from "./artifacts";
import { auth } from "./auth";
import { chat } from "./chat";
import { common } from "./common";
import { composer } from "./composer";
import type * as decisions from "./decisions";
import type * as details from "./details";
import { markdown } from "./markdown";
import { palette } from "./palette";
import type * as server from "./server";
import { threads } from "./threads";
import type * as voice from "./voice";

export const en = { artifacts, auth, chat, common, composer, markdown, palette, threads };
export type First = typeof en;
/** Late texts that several features show. */
export type Shared = typeof decisions & typeof details & typeof server & typeof voice;
