import type * as english from "../en";
import { artifacts } from "./artifacts";
import { auth } from "./auth";
import { chat } from "./chat";
import { common } from "./common";
import { composer } from "./composer";
import { markdown } from "./markdown";
import { palette } from "./palette";
import { threads } from "./threads";

export const zh: typeof english.en = {
  artifacts,
  auth,
  chat,
  common,
  composer,
  markdown,
  palette,
  threads,
};
