import { lazy, type ComponentType } from "react";
import { isText, type Kind } from "../kinds";
import type { ViewerProps } from "./types";

const Code = lazy(() => import("./code"));
const Media = lazy(() => import("./media"));
const Picture = lazy(() => import("./image"));
const Unknown = lazy(() => import("./unknown"));

const VIEWERS: Partial<Record<Kind, ComponentType<ViewerProps>>> = {
  markdown: lazy(() => import("./markdown")),
  html: lazy(() => import("./site")),
  image: Picture,
  svg: Picture,
  pdf: lazy(() => import("./pdf")),
  table: lazy(() => import("./table")),
  notebook: lazy(() => import("./notebook")),
  json: lazy(() => import("./json")),
  code: Code,
  text: Code,
  office: lazy(() => import("./office")),
  audio: Media,
  video: Media,
};

/** `source`: as the text that it is, if it is one. */
export const viewerFor = (kind: Kind, source: boolean): ComponentType<ViewerProps> =>
  source && isText(kind) ? Code : (VIEWERS[kind] ?? Unknown);
