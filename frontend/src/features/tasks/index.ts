/** Loaded with the first sub-agent of a conversation. */
export { TaskDock } from "./task-dock";
export { TaskGroup } from "./task-group";
export { TaskPanel } from "./task-panel";
