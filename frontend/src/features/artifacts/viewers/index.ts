import { type ComponentType } from "react";
import { late } from "@/lib/late";
import { isText, type Kind } from "../kinds";
import type { ViewerProps } from "./types";

const Code = late(() => import("./code"));
const Media = late(() => import("./media"));
const Picture = late(() => import("./image"));
const Unknown = late(() => import("./unknown"));

const VIEWERS: Partial<Record<Kind, ComponentType<ViewerProps>>> = {
  markdown: late(() => import("./markdown")),
  html: late(() => import("./site")),
  image: Picture,
  svg: Picture,
  pdf: late(() => import("./pdf")),
  table: late(() => import("./table")),
  notebook: late(() => import("./notebook")),
  json: late(() => import("./json")),
  code: Code,
  text: Code,
  office: late(() => import("./office")),
  audio: Media,
  video: Media,
};

/** `source`: as the text that it is, if it is one. */
export const viewerFor = (kind: Kind, source: boolean): ComponentType<ViewerProps> =>
  source && isText(kind) ? Code : (VIEWERS[kind] ?? Unknown);
