export { DiffView } from "./diff-view";
export { FileCard } from "./file-card";
export { ArtifactPanel } from "./panel";
