export { openArchivedView } from "./archived-view";
export { Sidebar } from "./sidebar";
export { Marked } from "./snippet";
export { threadLink } from "./thread-menu";
export { useSidebar } from "./use-sidebar";
export { useThreads, useThreadSearch } from "./use-threads";
export { useThreadActions } from "./use-thread-actions";
