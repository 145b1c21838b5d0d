import type { Messages } from "../en";
import { artifacts } from "./artifacts";
import { auth } from "./auth";
import { chat } from "./chat";
import { common } from "./common";
import { composer } from "./composer";
import { markdown } from "./markdown";
import { palette } from "./palette";
import { settings } from "./settings";
import { threads } from "./threads";

export const zh: Messages = { artifacts, auth, chat, common, composer, markdown, palette, settings, threads };
