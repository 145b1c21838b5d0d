import { Info } from "lucide-react";
import { section } from "../parts/section";

export const about = section({
  id: "about",
  group: "server",
  icon: Info,
  load: () => import("."),
  texts: { en: () => import("./en"), zh: () => import("./zh") },
  title: { en: "About", zh: "关于" },
  about: { en: "DeerFlow is open source.", zh: "DeerFlow 是开源软件。" },
});
