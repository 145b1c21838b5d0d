export { default } from "./timeline";
