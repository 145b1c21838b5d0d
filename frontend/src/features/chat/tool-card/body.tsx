"use client";
import type { ComponentType } from "react";
import type { ToolCall } from "../thread/message";
import { CommandBody } from "./command";
import { ImageBody, ListBody, ReadBody, WriteBody } from "./files";
import { PicturesBody, PlainBody, PresentBody, TodosBody, WebBody } from "./others";

const BODIES: Record<string, ComponentType<{ call: ToolCall }>> = {
  bash: CommandBody,
  read_process: CommandBody,
  kill_process: CommandBody,
  write_file: WriteBody,
  str_replace: WriteBody,
  read_file: ReadBody,
  ls: ListBody,
  glob: ListBody,
  grep: ListBody,
  view_image: ImageBody,
  web_search: WebBody,
  image_search: PicturesBody,
  web_fetch: WebBody,
  web_capture: WebBody,
  write_todos: TodosBody,
  present_files: PresentBody,
};

/** Content of an open tool card. */
export default function Body({ call }: { call: ToolCall }) {
  const Shown = BODIES[call.name] ?? PlainBody;
  return <Shown call={call} />;
}
