export { useLiveLists } from "./use-live-lists";
