export { FileCard } from "./file-card";
export { ArtifactPanel } from "./panel";
