import type { instructions as english } from "./en";

export const instructions: typeof english = {
  placeholder: "我是奥斯陆的一名护士，用挪威语和英语写作。",
};
