import type { components } from "@/lib/api-types";
import { http } from "@/lib/http";

type Schemas = components["schemas"];
export type SystemInfo = Schemas["SystemInfo"];
export type Sandbox = Schemas["SandboxInfo"];

export const system = () => http.get<SystemInfo>("/api/system");
