/** A node of the tree that rehype plugins change. */
export interface Node {
  type?: string;
  value?: string;
  tagName?: string;
  properties?: Record<string, unknown>;
  children?: Node[];
}
