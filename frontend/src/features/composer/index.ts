export { Composer } from "./composer";
