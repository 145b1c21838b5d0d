import type { FileAt } from "../api";

export interface ViewerProps {
  file: FileAt;
  /** Opens another file of the thread. */
  onPath: (path: string) => void;
}
